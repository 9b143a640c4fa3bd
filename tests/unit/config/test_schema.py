"""The JSON Schema of a configuration agrees with the loader: on every file here, and on single wrong settings.

What the loader takes the schema takes, always: an editor must not mark what is right. What the loader refuses for one
setting the schema refuses too, but for UNSAID.
"""

from __future__ import annotations

import copy
import json
import re
import tomllib
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from support.embedded_runs import here

from sfm_stream.cli.toml import toml_lines
from sfm_stream.config.config import Config, parse_config
from sfm_stream.config.derived import derived
from sfm_stream.config.schema import DIALECT, config_schema
from sfm_stream.config.tables import Settings
from sfm_stream.errors import ConfigError

ROOT = Path(__file__).parents[3]
SCHEMA = config_schema()
WHOLE = jsonschema.Draft7Validator(SCHEMA)

# On files: every table but [kafka], and a setting of each kind. On a cluster: the same with [kafka].
RICH = """
[pipeline]
id = "views"
[input]
path = "in.jsonl"
[event]
key = ["page", "site"]
item = "user"
time = "at"
[window]
size = "5m"
grace = "1m"
start = 2026-01-31T00:00:00Z
[privacy]
epsilon = 0.25
keys = "declared"
declared = [["/", 1]]
max_epsilon_per_item_day = 1000
[[privacy.declared_from]]
since = 2026-02-28T00:00:00+01:00
keys = [["/b", 2]]
[[spans]]
size = "day"
epsilon = 1
[output]
path = "out.sqlite"
"""
CLUSTER = '[kafka]\nbootstrap = ["localhost:9092"]\ntopic = "visits"\ntimestamps = "create_time"\n'
FILES = tomllib.loads(RICH, parse_float=Decimal)
ON_CLUSTER = {name: table for name, table in FILES.items() if name not in ("input", "output")} | tomllib.loads(CLUSTER)

INSTANTS = {"earliest", "latest", "start", "end", "since"}
WRONG: list[Any] = [
    *("", "5m", "300 s", "7x", "1.5h", "hour", "years", "a b", "Views", "any", "declared", "native", "2026-01-31"),
    *("127.0.0.1:99", "127.0.0.1:99999", "[::1]:80", "nowhere", "2026-01-31T00:00:00Z", "%Y-%m-%d", "uts"),
    *(True, False, 0, 1, -1, 3, 64, 4096, 4097, 1 << 40, 0.5, 1.0, -0.5, 1e-9, 17.5),
    *([], ["a"], ["a", 1], [["a", 1]], [1], [""], [{}], [{"size": "hour", "epsilon": 1}], {}, {"a": 1}),
    *(datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 1, 31), date(2026, 1, 31), time(12)),  # noqa: DTZ001 -- naive
]
UNSAID = {
    "a date or time without quotes where text is expected": lambda name, value: isinstance(value, date | time),
    "a date and time in quotes": lambda name, value: name in INSTANTS and isinstance(value, str),
    "a whole number with a fraction of zeros": lambda name, value: isinstance(value, float) and value.is_integer(),
    "a port above 65535": lambda name, value: isinstance(value, str) and value.endswith(":99999"),
}
"""What a schema of JSON does not tell apart: setting and value of what the loader refuses and the schema lets pass."""

Place = tuple[str | int, ...]


def places(model: Any = Settings, path: Place = ()) -> list[Place]:
    """The path of every setting, those of the first of several tables for all of them."""
    found: list[Place] = []
    for name, field in model.model_fields.items():
        inner = [kind for kind in jsonable_kinds(field.annotation) if hasattr(kind, "model_fields")]
        several = (0,) if str(field.annotation).startswith(("list", "tuple")) else ()
        found += places(inner[0], (*path, name, *several)) if inner else []
        found.append((*path, name))
    return found


def jsonable_kinds(annotation: Any) -> list[Any]:
    arguments = getattr(annotation, "__args__", ())
    return [annotation, *(kind for each in arguments for kind in jsonable_kinds(each))]


PLACES = places()


def as_json(value: Any) -> Any:
    """TOML as an editor gives it to a schema: dates as they are written."""
    if isinstance(value, dict):
        return {name: as_json(each) for name, each in value.items()}
    if isinstance(value, list):
        return [as_json(each) for each in value]
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, date | time) else value


def changed(path: Place, value: Any) -> dict[str, Any] | None:
    """A valid configuration with one setting changed; None where its table is in neither."""
    data: Any = copy.deepcopy(ON_CLUSTER if path[0] == "kafka" else FILES)
    at = data
    for part in path[:-1]:
        at = at[part] if isinstance(part, int) else at.setdefault(part, {})
    at[path[-1]] = value
    return data


def loads(data: dict[str, Any]) -> bool:
    """Whether the whole loader takes it."""
    try:
        Config(settings := Settings.model_validate(data), Path(), *derived(settings, Path()))
    except (ValidationError, ConfigError):
        return False
    return True


def is_of_tables(data: dict[str, Any]) -> bool:
    """Whether every setting by itself is as its table wants it."""
    try:
        Settings.model_validate(data)
    except ValidationError:
        return False
    return True


def test_both_bases_are_right():
    for base in (FILES, ON_CLUSTER):
        assert loads(base)
        assert WHOLE.is_valid(as_json(base))


def test_it_is_a_schema_of_the_dialect_that_editors_read():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == DIALECT
    assert "$defs" not in json.dumps(SCHEMA)


def values() -> st.SearchStrategy[Any]:
    words = st.text(st.characters(codec="ascii", exclude_characters="\n"), max_size=8)
    return st.sampled_from(WRONG) | words | st.integers(-10, 1 << 33) | st.floats(-2, 20, allow_nan=False)


@settings(max_examples=300, deadline=None)
@given(path=st.sampled_from(PLACES), value=values())
@example(("spans", 0, "buckets"), 4097)
@example(("event", "time_unit"), "minutes")
@example(("event", "time_unit"), "at\n%Y")
@example(("input",), {"path": "x", "pat": 1})
def test_a_single_setting_is_judged_as_the_loader_judges_it(path, value):
    data = changed(path, value)
    taken = WHOLE.is_valid(as_json(data))
    if not taken:
        assert not loads(data), f"{path}: an editor marks {value!r}, which is right"
    elif not is_of_tables(data):
        assert any(allows(path[-1], value) for allows in UNSAID.values()), f"{path}: an editor lets {value!r} pass"


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_every_setting_refuses_something_that_the_loader_refuses(path):
    """So that no setting is left out of the schema, nor has one that takes everything."""
    refused = [value for value in WRONG if not WHOLE.is_valid(as_json(changed(path, value)))]
    assert refused
    assert not any(loads(changed(path, value)) for value in refused)


@pytest.mark.parametrize("said", UNSAID)
def test_every_exception_is_still_one(said):
    """An exception that nothing needs would hide the next disagreement."""
    found = [
        (path, value)
        for path in PLACES
        for value in WRONG
        if UNSAID[said](path[-1], value)
        and WHOLE.is_valid(as_json(changed(path, value)))
        and not is_of_tables(changed(path, value))
    ]
    assert found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("privacy", "epsilon"), 0),
        (("privacy", "epsilon"), 16.5),
        (("privacy", "count_share"), 1),
        (("spans", 0, "epsilon"), 0.0001),
        (("spans", 0, "count_share"), -0.1),
        (("sketch", "buckets"), 100),
        (("sketch", "levels"), 49),
        (("spans", 0, "buckets"), 8),
        (("spans", 0, "levels"), 1),
        (("event", "time_unit"), "seconds"),
    ],
)
def test_bounds_that_other_modules_check_are_in_it_too(path, value):
    assert is_of_tables(changed(path, value))
    assert not loads(changed(path, value))
    assert not WHOLE.is_valid(as_json(changed(path, value)))


def test_an_unknown_setting_and_an_unknown_table_are_refused():
    for path in (("pipelin",), ("window", "sise"), ("spans", 0, "sise"), ("privacy", "declared_from", 0, "since_")):
        assert not WHOLE.is_valid(as_json(changed(path, "x")))


def test_what_has_neither_files_nor_a_cluster_is_refused():
    assert not WHOLE.is_valid(as_json({name: table for name, table in FILES.items() if name != "output"}))


# What an editor shows


def settings_of(path: Place) -> dict[str, Any]:
    """The schema of one setting."""
    at: dict[str, Any] = SCHEMA
    for part in path:
        if "allOf" in at:
            at = {**at, **SCHEMA["definitions"][at["allOf"][0]["$ref"].rpartition("/")[2]]}
        if "$ref" in at:
            at = SCHEMA["definitions"][at["$ref"].rpartition("/")[2]]
        at = at["items"] if isinstance(part, int) else at["properties"][part]
    return at


def test_every_setting_says_what_it_means():
    tables = {path for path in PLACES if len(path) == 1}
    assert [path for path in PLACES if path not in tables and not settings_of(path).get("description")] == []


def test_defaults_are_those_of_the_loader_as_they_are_written():
    """Each is put into a file, which then has the settings of one without it."""
    shown = {path: settings_of(path)["default"] for path in PLACES if "default" in settings_of(path)}
    assert shown["window", "clock_margin"] == "5s"
    assert shown["event", "earliest"] == "1990-01-01T00:00:00Z"
    assert shown["privacy", "count_share"] == 0.1
    assert len(shown) > 30
    for path, value in shown.items():
        base = ON_CLUSTER if path[0] == "kafka" else FILES
        written = datetime.fromisoformat(value) if path[-1] in INSTANTS else value
        assert Settings.model_validate(changed(path, written)) == Settings.model_validate(base), path


# Every file here


def repository_files() -> list[tuple[str, dict[str, Any]]]:
    """(where, content) of every configuration in the repository, whole ones and parts shown in pages."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")]
    blocks = [
        (f"{page.name}, block {number}", text)
        for page in pages
        for number, text in enumerate(re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.S))
    ]
    files = [path for folder in ("deploy", "examples") for path in (ROOT / folder).rglob("*.toml")]
    texts = blocks + [(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in files]
    parsed = [(where, tomllib.loads(text, parse_float=Decimal)) for where, text in texts]
    return [(where, data) for where, data in parsed if not data.keys() <= {"cases", *CASE_SETTINGS}]


CASE_SETTINGS = {"partitions", "first_start"}
"""What stands in a file of cases (docs/testing.md) beside them: it is no configuration."""
REPOSITORY = repository_files()


def without_required(schema: Any) -> Any:
    """The schema of a part of a file."""
    if isinstance(schema, list):
        return [without_required(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: without_required(each) for name, each in schema.items() if name not in ("required", "anyOf")} | (
        {"anyOf": without_required(schema["anyOf"])} if "anyOf" in schema and "properties" not in schema else {}
    )


@pytest.mark.parametrize(("where", "data"), REPOSITORY, ids=[where for where, _ in REPOSITORY])
def test_every_configuration_in_the_repository_is_right(where, data):
    is_whole = "pipeline" in data
    schema = SCHEMA if is_whole else without_required(SCHEMA)
    problems = [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(as_json(data))]
    assert problems == []


def test_the_repository_has_whole_files_and_parts():
    names = " ".join(where for where, _ in REPOSITORY)
    for name in (
        "README.md",
        "configuration.md",
        "operating.md",
        "deploy/app.toml",
        "examples/flights/by_carrier.toml",
    ):
        assert name in names


def test_a_wrong_setting_in_such_a_file_is_found():
    data = as_json(dict(REPOSITORY)["deploy/app.toml"])
    data["window"]["sise"] = "1h"
    assert not WHOLE.is_valid(data)


def test_config_show_of_everything_is_right():
    """What `config show` writes has every default in it."""
    config = parse_config(RICH, Path())
    shown = tomllib.loads("\n".join(toml_lines(config.settings)), parse_float=Decimal)
    assert [error.message for error in WHOLE.iter_errors(as_json(shown))] == []


def test_the_command_prints_it():
    done = here("config", "schema")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == SCHEMA
