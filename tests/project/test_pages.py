"""The pages that lead to others: what they name is there, and nothing is left out."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
INDEX = ROOT / "docs/README.md"
LED_FROM = [
    INDEX,
    ROOT / "docs/decisions/README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "README.md",
]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def dead_links(page: Path, text: str) -> list[str]:
    """Targets of relative links that are not there."""
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
    return [target for target in targets if "://" not in target and not (page.parent / target).exists()]


def missing_sections(page: Path, text: str) -> list[str]:
    """Links to sections, of this page or of another one that is there, under no heading of which they are."""
    missing = []
    for target, section in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", text):
        led_to = page.parent / target if target else page
        if "://" in target or not led_to.exists():
            continue
        headings = re.findall(r"^#+ (.+)$", led_to.read_text("utf-8") if target else text, re.M)
        if section not in {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}:
            missing.append(f"{target}#{section}")
    return missing


def missing_modules(text: str) -> list[str]:
    """Paths in the last column of a table of questions that are not in the package."""
    rows = re.findall(r"^\| .+ \|.*\| (`[^|]+) \|$", text, re.M)
    named = [path for row in rows for path in re.findall(r"`([^`]+)`", row)]
    return [path for path in named if not (ROOT / "sfm_stream" / path).exists()]


@pytest.mark.parametrize("page", LED_FROM, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_leads_to_is_there(page):
    assert dead_links(page, page.read_text("utf-8")) == []


def test_every_section_that_is_linked_is_there():
    pages = [*(ROOT / "docs").rglob("*.md"), *LED_FROM, *(ROOT / "deploy").glob("*.md")]
    texts = {page: page.read_text("utf-8") for page in pages}
    assert {page.name: found for page, text in texts.items() if (found := missing_sections(page, text))} == {}


def test_every_page_is_in_the_index():
    text = INDEX.read_text("utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= set(re.findall(r"\]\((\w[\w.-]*)\)", text))


def test_every_module_that_answers_a_question_is_there():
    text = INDEX.read_text("utf-8")
    assert missing_modules(text) == []
    assert text.count("\n| ") - 2 >= 25


def test_every_decision_is_listed_by_its_title():
    listed = re.findall(r"^(\d+)\. \[(.+)\]\((.+)\)$", (ROOT / "docs/decisions/README.md").read_text("utf-8"), re.M)
    pages = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    titles = [page.read_text("utf-8").splitlines()[0] for page in pages]
    assert [(f"# {number}. {title}", name) for number, title, name in listed] == [
        (title, page.name) for title, page in zip(titles, pages, strict=True)
    ]


def test_what_is_not_there_is_found():
    assert dead_links(INDEX, "[x](nothing.md), [y](privacy.md)") == ["nothing.md"]
    assert missing_sections(INDEX, "[x](privacy.md#the-unit), [y](privacy.md#no-unit), [z](#no)") == [
        "privacy.md#no-unit",
        "#no",
    ]
    assert missing_modules("| q | [p](privacy.md) | `privacy/flop.py`, `privacy/flip.py` |") == ["privacy/flop.py"]


def test_make_help_lists_every_target():
    done = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    (phony,) = re.findall(r"^\.PHONY: (.+)$", MAKEFILE, re.M)
    assert [line.split()[0] for line in done.stdout.splitlines()] == phony.split()
    assert all(len(line.split()) > 2 for line in done.stdout.splitlines())


def test_contributors_are_told_of_targets_that_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.+)$", MAKEFILE, re.M)
    assert set(re.findall(r"`make ([a-z-]+)`", text)) <= set(phony.split())


def test_the_folders_of_the_tests_are_described():
    described = set(re.findall(r"^\| `tests/(\w+)/` \|", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.M))
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    assert described == folders


def test_hooks_before_a_commit_are_local_and_run_what_lint_runs():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert repository["repo"] == "local"
    entries = [hook["entry"] for hook in repository["hooks"]]
    lint = re.findall(r"^\t\$\(BIN\)/(.+)$", MAKEFILE.split("\nlint:")[1].split("\n\n")[0], re.M)
    for command in lint:
        words = [word for word in command.split() if word != "."]
        assert any(entry.removeprefix(".venv/bin/").split()[: len(words)] == words for entry in entries), command


def test_the_version_is_a_release_or_the_next_one():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"\n## {version} (" in changelog or f"\nBecomes {version}, " in changelog
