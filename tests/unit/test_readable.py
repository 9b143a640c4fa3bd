"""What people see: nothing hides in it."""

from __future__ import annotations

import json
import logging
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.hostile_text import HOSTILE, PLAIN

from sfm_stream.observe.logs import TextLines
from sfm_stream.readable import duration, instant, local, visible


@given(st.text())
def test_nothing_hides(text):
    shown = visible(text)
    assert not [c for c in shown if unicodedata.category(c)[0] == "C" or unicodedata.category(c) in ("Zl", "Zp")]
    assert not set(shown) & set("\u00a0\u3000\u034f\u3164\u2800\ufe0f\U000e0100")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_cannot_be_seen_is_written_as_json_writes_it(text):
    shown = visible(text)
    assert shown != text
    assert shown.isprintable()
    assert json.loads(f'"{shown}"') == text


def test_plain_text_stays_as_it_is():
    for text in PLAIN:
        assert visible(text) == text


def test_a_line_of_the_log_stays_one_line():
    record = logging.makeLogRecord(
        {"msg": "topic %s", "args": ("a\x1b[2J\u202eb\n1",), "levelname": "INFO", "name": "x"}
    )
    line = TextLines().format(record)
    assert line.isprintable()
    assert line.endswith("topic a\\u001b[2J\\u202eb\\n1")


def test_times_are_written_as_a_question_takes_them():
    assert instant(0) == "1970-01-01T00:00:00Z"
    assert instant(1) == "1970-01-01T00:00:00.001Z"
    assert local(0, "UTC") == "1970-01-01 00:00"
    assert local(1500, "UTC") == "1970-01-01 00:00:01.500"
    assert local(1_761_438_600_000, "Europe/Berlin") == "2025-10-26 02:30+02:00"
    assert local(1_761_442_200_000, "Europe/Berlin") == "2025-10-26 02:30+01:00"
    assert local(1_761_445_800_000, "Europe/Berlin") == "2025-10-26 03:30"


@pytest.mark.parametrize(
    ("span_ms", "text"),
    [(900_000, "15m"), (3_600_000, "1h"), (500, "500ms"), (90_000, "90s"), (86_400_000, "1d"), (0, "0ms")],
)
def test_a_duration_is_what_a_configuration_takes(span_ms, text):
    from sfm_stream.config.values import duration_ms

    assert duration(span_ms) == text
    assert duration_ms(text) == span_ms
