"""The reference pages and the code say the same."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import get_args

from sfm_stream import errors
from sfm_stream.config.tables import Settings
from sfm_stream.types import Reason

TABLES = {
    name: next(kind for kind in (field.annotation, *get_args(field.annotation)) if inspect.isclass(kind))
    for name, field in Settings.model_fields.items()
}
"""Of a table that may be left out, the model that it has where it is there."""
DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_setting_is_documented_and_no_other():
    rows = re.findall(r"^\| (`[^|]*`) \|([^|]*)\|", (DOCS / "configuration.md").read_text(), re.M)
    documented = {name for names, _ in rows for name in re.findall(r"`([a-z_.]+)`", names)}
    settings = {f"{table}.{name}" for table, model in TABLES.items() for name in model.model_fields}
    assert documented == settings


def test_required_settings_have_no_default_in_the_docs():
    rows = re.findall(r"^\| `([a-z_]+)\.([a-z_]+)` \|([^|]*)\|", (DOCS / "configuration.md").read_text(), re.M)
    for table, name, default in rows:
        field = TABLES[table].model_fields[name]
        assert field.is_required() == (not default.strip()), f"{table}.{name}"


def test_every_reason_is_explained():
    text = (DOCS / "operating.md").read_text()
    for reason in Reason:
        if reason is not Reason.OK and not reason.name.startswith("TIME_LOOKS_LIKE"):
            assert f"`{reason.name.lower()}`" in text
    assert "`time_looks_like_seconds` and so on" in text


def test_exit_codes_are_those_of_the_errors():
    codes = {int(code) for code in re.findall(r"^\| (\d)", (DOCS / "operating.md").read_text(), re.M)}
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, errors.SfmStreamError)]
    assert codes == {0} | {c.exit_code for c in classes}


def test_the_error_tree_in_the_docstring_is_the_real_one():
    tree = re.findall(r"[├└]── (\w+)", errors.__doc__)
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, errors.SfmStreamError)]
    assert sorted(tree) == sorted(c.__name__ for c in classes if c is not errors.SfmStreamError)
    assert all(c.__doc__ for c in classes)


def test_each_decision_has_a_number_of_its_own():
    pages = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    numbers = [int(page.name[:4]) for page in pages]
    assert numbers == list(range(1, len(pages) + 1))
    assert [page.read_text("utf-8").split(".")[0] for page in pages] == [f"# {number}" for number in numbers]
