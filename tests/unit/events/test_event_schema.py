"""Schemas that cannot be meant are refused, and paths."""

from __future__ import annotations

from typing import Any

import pytest

from sfm_stream.errors import UsageError
from sfm_stream.events.event_schema import MAX_TIME_MS, EventSchema, parse_path


@pytest.mark.parametrize(
    "wrong",
    [
        {"earliest_ms": -1},
        {"earliest_ms": 5, "latest_ms": 4},
        {"latest_ms": MAX_TIME_MS + 1},
        {"max_key_bytes": 0},
        {"max_record_bytes": 0},
        {"time_unit": "minutes"},
        {"time_unit": "%Q"},
        {"naive_zone": "Europe/Atlantis"},
        {"naive_zone": "../etc/passwd"},
        {"naive_zone": ""},
        {"item": ""},
        {"item": "a..b"},
        {"item": "a."},
        {"item": ".a"},
        {"item": 'a"b'},
        {"item": "a\\b"},
        {"item": "a\nb"},
        {"item": "at"},
        {"item": "at.ms"},
        {"key": ("page", "page")},
    ],
)
def test_schemas_that_cannot_be_meant_are_refused(wrong: dict[str, Any]) -> None:
    right: dict[str, Any] = {"key": ("page",), "item": "user", "time": "at", "time_unit": "ms"}
    with pytest.raises(UsageError):
        EventSchema(**right | {"earliest_ms": 0, "latest_ms": 9} | wrong)


def test_paths() -> None:
    assert parse_path("user") == ("user",)
    assert parse_path("user.id") == ("user", "id")
    assert parse_path(r"a\.b.c\.") == ("a.b", "c.")
    assert parse_path("né.a b/c") == ("né", "a b/c")
