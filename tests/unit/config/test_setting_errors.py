"""What is said about settings that are not known, and about tables and lists that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfm_stream.config.config import parse_config
from sfm_stream.errors import ConfigError

SINCE = "since = 2026-01-31T00:00:00Z\nkeys = []"


def problems_of(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, Path())
    return caught.value.problems


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[window]\nxyz = 1", "window.xyz: unknown setting; known are size, grace, start"),
        ("[input]\nxyz = 1", "input.xyz: unknown setting; known are path, complete"),
        ("[output]\nxyz = 1", "output.xyz: unknown setting; known are path"),
        ("[kafka]\nxyz = 1", "kafka.xyz: unknown setting; known are bootstrap, topic"),
        ("[kafka]\nbootstrp = 1", 'kafka.bootstrp: unknown setting; did you mean "bootstrap"?'),
        ("[[spans]]\nxyz = 1", "spans.0.xyz: unknown setting; known are size, epsilon, count_share"),
        ('[[spans]]\nsise = "day"', 'spans.0.sise: unknown setting; did you mean "size"?'),
        (
            f"[[privacy.declared_from]]\nxyz = 1\n{SINCE}",
            "privacy.declared_from.0.xyz: unknown setting; known are since",
        ),
        ("[xyz]\na = 1", "xyz: unknown setting; known are pipeline, input"),
    ],
)
def test_an_unknown_setting_is_answered_with_those_of_its_own_table(text: str, problem: str) -> None:
    assert any(said.startswith(problem) for said in problems_of(text)), problems_of(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[spans]\nsize = "day"', "spans: expected a table [[spans]] for each, got one table"),
        ('spans = "day"', "spans: expected a table [[spans]] for each, got str"),
        ('spans = ["day"]', "spans.0: expected a table [[spans]], got str"),
        ("window = 3", "window: expected a table [window], got int"),
        ('[privacy]\ndeclared = "mail"', "privacy.declared: expected a list in brackets, got str"),
        (
            f"[privacy.declared_from]\n{SINCE}",
            "privacy.declared_from: expected a table [[privacy.declared_from]] for each",
        ),
    ],
)
def test_what_is_no_table_or_no_list_is_answered_with_how_one_is_written(text: str, problem: str) -> None:
    assert any(said.startswith(problem) for said in problems_of(text)), problems_of(text)
