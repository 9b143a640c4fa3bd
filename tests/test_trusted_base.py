"""A rule of the house: what an auditor must read to trust a release is the list in docs/privacy.md, and stays short.

The list is compared with what the modules import, as text, and with what a fresh interpreter loads.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_house_rules import MODULES, imports, tree

PAGE = (Path(__file__).parents[1] / "docs" / "privacy.md").read_text("utf-8")
ROOTS = ["privacy/flip.py", "privacy/selection.py", "privacy/budget.py"]
MAX_LINES = 1000
ROW = re.compile(r"^\| `([\w/]+\.py)` \| (\d+) \| (.+) \|$", re.MULTILINE)


def listed(page: str) -> dict[str, int]:
    """Module and stated lines of each row of the table under "What to read"."""
    section = page.split("## What to read, to trust a release\n")[1].split("\n## ")[0]
    return {path: int(lines) for path, lines, _ in ROW.findall(section)}


def file_of(name: str, modules: dict[str, str]) -> str | None:
    """The file of a dotted name: of the module itself, of a package, or of the module that has the name."""
    parts = name.split(".")[1:]
    for length in range(len(parts), -1, -1):
        stem = "/".join(parts[:length])
        for path in (f"{stem}.py", f"{stem}/__init__.py".lstrip("/")):
            if path in modules:
                return path
    return None


def reached(roots: list[str], modules: dict[str, str]) -> set[str]:
    """Modules that these import, directly or not, at any depth of any function; packages apart (see `runs_nothing`)."""
    seen, waiting = set[str](), list(roots)
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for _, name in imports(modules[path], path):
            if name.split(".")[0] == "sfm_stream" and (target := file_of(name, modules)):
                waiting.append(target)
    return seen


def packages_of(paths: set[str]) -> set[str]:
    """The `__init__.py` of every package that these modules lie in."""
    parents = {parent for path in paths for parent in Path(path).parents}
    return {(parent / "__init__.py").as_posix() for parent in parents}


def runs_nothing(source: str) -> bool:
    """Whether a package only says where its names are: a text, names, and functions for the first use of a name."""

    def harmless(node: ast.stmt) -> bool:
        if isinstance(node, ast.If):
            return ast.unparse(node.test) == "TYPE_CHECKING" and all(map(harmless, node.orelse))
        if isinstance(node, ast.ImportFrom):
            return node.module == "typing"
        if isinstance(node, ast.FunctionDef):
            return node.name in ("__getattr__", "__dir__")
        if isinstance(node, ast.Assign):
            return ast.unparse(node.targets[0]) == "__all__"
        return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

    return all(map(harmless, tree(source).body))


def problems(modules: dict[str, str], page: str) -> list[str]:
    """What is wrong with the base, one line for each finding."""
    base, stated = reached(ROOTS, modules), listed(page)
    found = [f"{path}: reached, but not in docs/privacy.md" for path in sorted(base - stated.keys())]
    found += [f"{path}: in docs/privacy.md, but not reached" for path in sorted(stated.keys() - base)]
    lines = {path: len(modules[path].splitlines()) for path in base}
    if sum(lines.values()) > MAX_LINES:
        found.append(f"{sum(lines.values())} lines, at most {MAX_LINES}")
    found += [
        f"{path}: {lines[path]} lines, docs/privacy.md says {stated[path]}"
        for path in sorted(base & stated.keys())
        if abs(lines[path] - stated[path]) > 5
    ]
    found += [f"{path}: runs at import" for path in sorted(packages_of(base)) if not runs_nothing(modules[path])]
    return found


def test_the_base_is_the_list_and_is_short():
    assert len(listed(PAGE)) >= 9, "the table was not found"
    assert problems(MODULES, PAGE) == []


def test_a_fresh_interpreter_loads_the_list_and_no_other_module():
    program = "import sys, sfm_stream.privacy.flip, sfm_stream.privacy.selection, sfm_stream.privacy.budget\n"
    program += "print(*(m for m in sys.modules if m.split('.')[0] == 'sfm_stream'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {file_of(name, MODULES) for name in done.stdout.split()}
    assert loaded == listed(PAGE).keys() | packages_of(set(listed(PAGE)))


def test_every_module_of_the_list_says_what_to_check():
    assert all(len(check) > 20 for _, _, check in ROW.findall(PAGE))


@pytest.mark.parametrize(
    ("path", "planted", "problem"),
    [
        ("privacy/flip.py", "from sfm_stream.estimation.estimate import estimate", "estimation/estimate.py: reached"),
        ("privacy/coins.py", "def f():\n    from sfm_stream.clock import now_ms", "clock.py: reached"),
        ("sketch/sfm.py", "from . import tally", "sketch/tally.py: reached"),
        ("sketch/shape.py", "if TYPE_CHECKING:\n    from sfm_stream.sketch import raw", "sketch/raw.py: reached"),
        ("sketch/sfm.py", "from sfm_stream import merge", "__init__.py: reached"),
        ("sketch/sfm.py", "x = 1\n" * 400, "lines, at most 1000"),
        ("privacy/coins.py", "x = 1\n" * 20, "lines, docs/privacy.md says 40"),
        ("privacy/__init__.py", "from sfm_stream.privacy.statement import statement", "privacy/__init__.py: runs"),
        ("__init__.py", "from sfm_stream.estimation.estimate import estimate", "__init__.py: runs at import"),
        ("__init__.py", "if TYPE_CHECKING:\n    pass\nelse:\n    import sfm_stream.public", "__init__.py: runs"),
    ],
)
def test_a_planted_violation_is_caught(path, planted, problem):
    changed = MODULES | {path: f"{MODULES[path]}\n\n{planted}\n"}
    assert any(problem in found for found in problems(changed, PAGE))


def test_a_list_that_is_not_the_base_is_caught():
    without = PAGE.replace("| `privacy/coins.py` |", "| privacy/coins.py |")
    assert "privacy/coins.py: reached, but not in docs/privacy.md" in problems(MODULES, without)
    more = PAGE.replace("| `errors.py` |", "| `sketch/raw.py` | 90 | what is secret, in memory only |\n| `errors.py` |")
    assert problems(MODULES, more) == ["sketch/raw.py: in docs/privacy.md, but not reached"]
