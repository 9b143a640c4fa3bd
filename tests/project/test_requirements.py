"""requirements/*.txt: what pyproject.toml asks for is pinned, within its bounds, by hashes, and no host is named."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
NATIVE = tomllib.loads((ROOT / "native" / "pyproject.toml").read_text("utf-8"))
FILES = {
    "run.txt": PROJECT["dependencies"] + PROJECT["optional-dependencies"]["serve"],
    "test.txt": PROJECT["dependencies"]
    + PROJECT["optional-dependencies"]["test"]
    + PYPROJECT["build-system"]["requires"],
    "build.txt": PYPROJECT["build-system"]["requires"],
    "native.txt": NATIVE["build-system"]["requires"],
}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PIN = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9-]*)==(?P<version>[0-9][0-9a-z.]*)"
    r"(?: ; (?P<marker>.+?))?(?P<hashes>(?: --hash=sha256:[0-9a-f]{64})+)"
)


def text_of(name: str) -> str:
    return (ROOT / "requirements" / name).read_text("utf-8")


def pins_of(text: str) -> list[re.Match[str]]:
    """One for each requirement; a line of another form is an error."""
    joined = re.sub(r" \\\n\s*", " ", re.sub(r"^#.*\n", "", text, flags=re.M))
    return [required(PIN.fullmatch(line), line) for line in joined.splitlines()]


def required(pin: re.Match[str] | None, line: str) -> re.Match[str]:
    if pin is None:
        raise ValueError(f"no pin with hashes alone: {line[:80]}")
    return pin


def problems(text: str, wanted: list[str]) -> list[str]:
    """What somebody who installs this on Linux would miss, for each Python; [] if nothing."""
    pins = pins_of(text)
    found = []
    for python in PYTHONS:
        here = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
        installed: dict[str, str] = {}
        for pin in pins:
            if pin["marker"] is None or Marker(pin["marker"]).evaluate(here):
                if pin["name"] in installed:
                    found.append(f"Python {python}: {pin['name']} twice")
                installed[pin["name"]] = pin["version"]
        for each in map(Requirement, wanted):
            version = installed.get(canonicalize_name(each.name))
            if version is None or version not in each.specifier:
                found.append(f"Python {python}: {each}, but pinned is {version}")
    return found


@pytest.mark.parametrize("name", FILES)
def test_what_pyproject_asks_for_is_pinned(name):
    assert problems(text_of(name), FILES[name]) == []


@pytest.mark.parametrize("name", ["run.txt", "test.txt", "build.txt"])
def test_an_image_holds_what_was_tested(name):
    pin = re.compile(r"^\S+==.*(?:\n +--hash=.*)+", re.M)
    assert set(pin.findall(text_of(name))) <= set(pin.findall(text_of("test.txt")))
    assert pin.findall(text_of(name))


@pytest.mark.parametrize("name", FILES)
def test_no_host_is_named(name):
    """No option but hashes, no address in place of a version."""
    assert pins_of(text_of(name))
    assert "://" not in text_of(name)


@pytest.mark.parametrize(
    ("planted", "says"),
    [
        (("click==8", "click==7"), "click>=8.1, but pinned is 7"),
        (("click==8", "clack==8"), "click>=8.1, but pinned is None"),
        (
            ("xxhash==", "xxhash==3.4 ; python_full_version < '3.12' \\\n    --hash=sha256:" + "0" * 64 + "\nxxhash=="),
            "xxhash twice",
        ),
        (("kafka-python==3.0", "kafka-python==3.1"), "kafka-python"),
    ],
)
def test_a_pin_that_does_not_fit_is_found(planted, says):
    text = text_of("run.txt")
    assert planted[0] in text
    assert any(says in problem for problem in problems(text.replace(*planted), FILES["run.txt"]))


@pytest.mark.parametrize(
    "line",
    [
        "click==8.1",
        "click>=8.1 --hash=sha256:" + "0" * 64,
        "click==8.1 --hash=md5:00",
        "--index-url https://packages.invalid/",
        "--find-links wheels",
        "click @ file:click.whl --hash=sha256:" + "0" * 64,
    ],
)
def test_a_line_of_another_form_is_an_error(line):
    with pytest.raises(ValueError, match="no pin with hashes alone"):
        pins_of(line)
