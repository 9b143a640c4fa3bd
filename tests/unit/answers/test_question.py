"""A question as texts ask it: its topic, its span, and which part of it is wrong."""

from __future__ import annotations

import pytest
from support.embedded_runs import HOUR_MS, START_MS, write_config

from sfm_stream.answers.asked_last import LastUnits
from sfm_stream.answers.asked_span import EVERYTHING
from sfm_stream.answers.question import Question, parse_question
from sfm_stream.clock import now_ms
from sfm_stream.config.config import load_config
from sfm_stream.errors import QuestionError, UsageError
from sfm_stream.pipeline.rollup.grains import grains_of
from sfm_stream.types import Window
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.keys import encode_key


@pytest.fixture
def config(tmp_path):
    return load_config(write_config(tmp_path, zone="Europe/Berlin"))


def test_without_keys_and_borders_it_asks_for_everything(config):
    assert parse_question(config, "day") == Question("day", None, EVERYTHING, "Europe/Berlin")
    assert parse_question(config, "day").encoded_keys is None


@pytest.mark.parametrize("grain", ["range", "window", "quarter", "hour", "day", "week", "month", None])
def test_quarters_hours_and_days_are_roll_ups_and_all_else_is_made_of_sketches(grain):
    assert Question(grain).topic == (ROLLUPS if grain in ("quarter", "hour", "day", None) else SKETCHES)


def test_weeks_and_months_begin_where_their_days_do(config):
    question = parse_question(config, "week", since="2026-03-23", until="2026-03-30")
    assert (question.span.end_ms - question.span.start_ms) / HOUR_MS == 167
    assert parse_question(config, "month", since="2026-03-01").span.end_ms == EVERYTHING.end_ms
    for grain, border, nearest in (
        ("week", {"since": "2026-03-01"}, 'Ask for --from "2026-02-23 00:00", or --from "2026-03-02 00:00"'),
        ("month", {"until": "2026-03-02"}, 'Ask for --to "2026-04-01 00:00", or --to "2026-03-01 00:00"'),
        ("day", {"until": "2026-03-02 12:00"}, 'Ask for --to "2026-03-03 00:00", or --to "2026-03-02 00:00"'),
    ):
        with pytest.raises(QuestionError) as refused:
            parse_question(config, grain, **border)
        assert f"is inside a {grain}, which is counted as a whole. {nearest}" in refused.value.problem


def test_the_last_units_are_those_before_the_time_of_asking(config):
    question = parse_question(config, "range", last="7d", asked_ms=START_MS)
    assert (question.span, question.last) == (EVERYTHING, LastUnits("7d", 7, "day", START_MS))
    before = now_ms()
    assert before <= parse_question(config, "day", last="7d").last.asked_ms <= now_ms()


def test_times_are_those_of_the_zone_and_keys_are_looked_for_by_their_bytes(config):
    question = parse_question(config, "range", ["p", "7"], "2026-01-01 01:00", "2026-01-01T01:00:00Z")
    assert question.span == Window(START_MS, START_MS + HOUR_MS)
    assert [key.text for key in question.keys] == ["p", "7"]
    assert question.encoded_keys == {encode_key(key) for key in ("p", "7", 7)}


def test_rollups_of_every_grain_are_asked_for_on_borders_of_the_finest(config):
    assert parse_question(config, None, since="2026-01-01 01:00").span.start_ms == START_MS
    with pytest.raises(QuestionError, match="is inside an hour, which"):
        parse_question(config, None, since="2026-01-01 01:15")


QUARTERS = '[[spans]]\nsize = "15m"\nepsilon = 1\n[rollup]'


@pytest.mark.parametrize(
    ("size", "share", "spans", "published"),
    [
        ("15m", 0.1, "[rollup]", True),
        ("15m", 0, "[rollup]", False),
        ("5m", 0.1, "[rollup]", False),
        ("5m", 0.1, QUARTERS, True),
        ("5m", 0, QUARTERS, True),
    ],
)
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata"])
def test_quarters_can_be_asked_for_where_roll_ups_have_them(tmp_path, size, share, spans, published, zone):
    path = write_config(tmp_path, size=size, zone=zone, privacy=f"count_share = {share}")
    path.write_text(path.read_text().replace("[rollup]", spans))
    config = load_config(path)
    plan = config.plan(1, START_MS)
    if plan.names:
        made = grains_of(config.calendar, {span.name: span.size_ms for span in plan.spans})
        assert any("quarter" in each.grains for each in made.values()) == (published or zone == "Asia/Kolkata")
    if published or zone == "Asia/Kolkata":
        assert parse_question(config, "quarter").grain == "quarter"
    else:
        with pytest.raises(QuestionError, match=f"--by quarter: days of {zone} are made of hours, no quarters are pub"):
            parse_question(config, "quarter")


@pytest.mark.parametrize(
    ("texts", "part", "problem"),
    [
        ({"grain": "range", "since": "2026-01-01"}, "", "--by range needs --from and --to, or --last"),
        (
            {"grain": "range", "since": "2026-01-01", "last": "7d"},
            "",
            "--last stands for --from and --to: give it alone",
        ),
        ({"grain": "week", "last": "7d"}, "--last", "7d is not made of whole weeks: ask for weeks, 4w"),
        ({"grain": "day", "since": "2026-01-02", "until": "2026-01-02"}, "", "--from is not before --to"),
        ({"grain": "day", "since": "1969-12-31"}, "--from", "'1969-12-31' is before 1970, where times begin here"),
        ({"grain": "day", "since": "0001-01-01"}, "--from", "'0001-01-01' is before 1970, where times begin here"),
        ({"grain": "day", "until": "9999-12-31"}, "--to", "'9999-12-31' is not before 9999, where times end here"),
        (
            {"grain": "window", "until": "9999-01-01T00:00Z"},
            "--to",
            "'9999-01-01T00:00Z' is not before 9999, where times end here",
        ),
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
