"""A question as texts ask it: its topic, its span, and which part of it is wrong."""

from __future__ import annotations

import pytest
from support.embedded_runs import HOUR_MS, START_MS, write_config

from sfm_stream.answers.asked_span import EVERYTHING
from sfm_stream.answers.question import Question, parse_question
from sfm_stream.config.config import load_config
from sfm_stream.errors import QuestionError, UsageError
from sfm_stream.types import Window
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.keys import encode_key


@pytest.fixture
def config(tmp_path):
    return load_config(write_config(tmp_path, zone="Europe/Berlin"))


def test_without_keys_and_borders_it_asks_for_everything(config):
    assert parse_question(config, "day") == Question("day", None, EVERYTHING, "Europe/Berlin")
    assert parse_question(config, "day").encoded_keys is None


@pytest.mark.parametrize("grain", ["range", "window", "quarter", "hour", "day", None])
def test_windows_are_sketches_and_what_is_longer_are_rollups(grain):
    assert Question(grain).topic == (SKETCHES if grain in ("range", "window") else ROLLUPS)


def test_times_are_those_of_the_zone_and_keys_are_looked_for_by_their_bytes(config):
    question = parse_question(config, "range", ["p", "7"], "2026-01-01 01:00", "2026-01-01T01:00:00Z")
    assert question.span == Window(START_MS, START_MS + HOUR_MS)
    assert [key.text for key in question.keys] == ["p", "7"]
    assert question.encoded_keys == {encode_key(key) for key in ("p", "7", 7)}


def test_rollups_of_every_grain_are_asked_for_on_borders_of_the_finest(config):
    assert parse_question(config, None, since="2026-01-01 01:00").span.start_ms == START_MS
    with pytest.raises(QuestionError, match="is inside a hour"):
        parse_question(config, None, since="2026-01-01 01:15")


@pytest.mark.parametrize(
    ("texts", "part", "problem"),
    [
        ({"grain": "range", "since": "2026-01-01"}, "", "--by range needs --from and --to"),
        ({"grain": "day", "since": "2026-01-02", "until": "2026-01-02"}, "", "--from is not before --to"),
        ({"grain": "quarter"}, "", "--by quarter: days of Europe/Berlin are made of hours, no quarters are published"),
        ({"grain": "day", "since": "1969-12-31"}, "--from", "'1969-12-31' is before 1970, where times begin here"),
        ({"grain": "day", "until": "x"}, "--to", "'x' is not a time such as 2026-01-31 or 2026-01-31T12:00:00Z"),
        (
            {"grain": "day", "keys": ["a", "\ud800"]},
            "--key",
            "a key has 1 field: as it is shown, as a JSON array, or joined by commas",
        ),
    ],
)
def test_what_has_no_meaning_is_refused_and_the_part_is_named(config, texts, part, problem):
    with pytest.raises(UsageError) as refused:
        parse_question(config, **texts)
    assert (refused.value.part, refused.value.problem) == (part, problem)
    assert str(refused.value) == (f"{part}: {problem}" if part else problem)
