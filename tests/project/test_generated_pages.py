"""Pages and dashboards are what `make docs` writes now."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.metadata import files

import pytest

import sfm_stream
from docs import make_api, make_cli, make_licences, make_metrics
from sfm_stream.cli.commands import COMMANDS


@pytest.mark.parametrize("made", [make_api, make_cli, make_licences, make_metrics], ids=lambda made: made.__name__)
def test_the_page_is_up_to_date(made):
    assert made.PAGE.read_text("utf-8") == made.page(), f"{made.PAGE.name} is older than what it describes: make docs"


def test_every_command_is_on_its_page_with_all_of_its_options():
    page = make_cli.PAGE.read_text("utf-8")
    for command, context in make_cli.commands():
        (part,) = re.findall(rf"^## `{context.command_path}`\n\n```text\n(.*?)```", page, re.M | re.S)
        assert all(name in part for parameter in command.params for name in parameter.opts if name.startswith("-"))
        assert command.help, f"{context.command_path} has no help"
    assert all(f"## `sfm-stream {name}`" in page for name in COMMANDS)


def test_the_page_of_commands_is_the_same_on_any_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert make_cli.page() == make_cli.PAGE.read_text("utf-8")


def test_every_public_name_has_an_entry_that_says_something():
    page = make_api.PAGE.read_text("utf-8")
    modules = [sfm_stream, *map(import_module, make_api.MODULES)]
    for name, thing in ((name, getattr(module, name)) for module in modules for name in module.__all__):
        text = "\n\n".join(make_api.entry(name, thing))
        assert text in page, name
        assert len(text.splitlines()) > 1, f"{name} has no docstring"


def test_the_reference_holds_whatever_machine_it_is_written_on():
    assert " at 0x" not in make_api.page(), "an address in memory"


@pytest.mark.parametrize("package", make_licences.pinned("run.txt"))
def test_the_notices_of_what_is_in_the_image_are_in_the_image(package):
    """As docs/licences.md says; the package's own files hold them."""
    notices = [
        file for file in files(package) or [] if {"LICENSE", "COPYING", "LICENCE"} & {file.stem.upper(), file.name}
    ]
    assert notices


def test_a_package_that_names_no_licence_is_an_error(monkeypatch):
    monkeypatch.setattr(
        make_licences, "metadata", lambda package: type("Said", (dict,), {"get_all": lambda *_: None})()
    )
    with pytest.raises(ValueError, match="names no licence"):
        make_licences.licence_of("click")


def test_each_licence_that_asks_for_more_than_notices_is_explained():
    run, rest = make_licences.page().split("## In the compiled kernel")
    strong = [line.split("|")[1].strip() for line in run.splitlines() if line.startswith("|") and "GPL" in line]
    assert strong == ["crc32c"]
    assert "**crc32c** is under the GNU Lesser General Public License" in run
    assert "GPL" not in rest
