"""What people see: nothing hides in it, and no two keys look the same."""

from __future__ import annotations

import json
import logging
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from sfm_stream.answers.rows import Row
from sfm_stream.cli.output import rows_table
from sfm_stream.estimation.estimate import Estimate, Status
from sfm_stream.observe.logs import TextLines
from sfm_stream.readable import duration, instant, key_text, local, parse_key, visible
from sfm_stream.types import Window

HOSTILE = {
    "esc": "\x1b[31mred",
    "c1": "a\x9b31mb",
    "delete": "a\x7fb",
    "line": "a\nok: 1",
    "return": "a\rb",
    "nul": "a\0b",
    "rlo": "a\u202egpj.exe",
    "isolate": "\u2067a\u2069",
    "zero width": "pay\u200bpal",
    "joiner": "a\u200db",
    "bom": "\ufeffa",
    "no-break": "a\u00a0b",
    "paragraph": "a\u2029b",
    "filler": "\u3164",
    "braille blank": "\u2800",
    "variant": "a\ufe0fb",
    "grapheme joiner": "a\u034fb",
    "tag": "a\U000e0041b",
    "private": "a\ue000b",
}
PARTS = st.one_of(
    st.text(
        st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from('/ "\\0x1a()l\n\x1b\u202e')), max_size=9
    ),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.binary(max_size=4),
)
KEYS = st.lists(PARTS, max_size=4).map(tuple)


@given(KEYS)
def test_a_shown_key_reads_back(key):
    """So no two look the same."""
    assert parse_key(key_text(key)) == key
    assert type(parse_key(key_text(key))) is tuple


@given(st.text())
def test_nothing_hides(text):
    for shown in (visible(text), key_text((text,)) if text.isprintable() else visible(text)):
        assert not [c for c in shown if unicodedata.category(c)[0] == "C" or unicodedata.category(c) in ("Zl", "Zp")]
        assert not set(shown) & set("\u00a0\u3000\u034f\u3164\u2800\ufe0f\U000e0100")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_cannot_be_seen_is_written_as_json_writes_it(text):
    shown = visible(text)
    assert shown != text and shown.isprintable() and json.loads(f'"{shown}"') == text
    assert key_text((text,)) == f'"{shown}"'


def test_plain_text_stays_as_it_is():
    for text in (
        "/",
        "/pricing",
        "/x/[/y]",
        "/post/[id]",
        ":smile:",
        "日本語",
        "Zürich",
        "a b",
        "a/b",
        "1 / x"[:2] + "x",
    ):
        assert visible(text) == text
        assert key_text((text,)) in (text, f'"{text}"')
    assert key_text(("/x/[/y]",)) == "/x/[/y]" and key_text(("/post/[id]",)) == "/post/[id]"
    assert key_text((":smile:",)) == ":smile:" and key_text(("/",)) == "/"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((0,), ("0",)),
        (("",), ()),
        (("(all)",), ()),
        (("a", "1 / x"), ("a / 1", "x")),
        (("a", "/ b"), ("a /", "b")),
        ((b"\x01",), ("0x01",)),
        (("-5",), (-5,)),
        (('"a"',), ("a",)),
        (("\\n",), ("\n",)),
        ((" a",), ("a",)),
        (("\u0301a",), ("a",)),
    ],
)
def test_keys_that_differ_look_different(one, other):
    assert key_text(one) != key_text(other)
    assert parse_key(key_text(one)) == one and parse_key(key_text(other)) == other


def test_the_notation_of_the_docs():
    assert key_text((0,)) == "0" and key_text(("0",)) == '"0"'
    assert key_text(()) == "(all)" and key_text(("",)) == '""'
    assert key_text(("a", "1 / x")) == 'a / "1 / x"' and key_text(("a / 1", "x")) == '"a / 1" / x'
    assert key_text(("\x1b[0m",)) == '"\\u001b[0m"'


def test_a_table_prints_keys_and_no_markup():
    keys = [("/x/[/y]",), ("/post/[id]",), (":smile:",), ("[bold]b[/bold]",), *((text,) for text in HOSTILE.values())]
    found = Estimate(5.0, 1.0, 3.0, 7.0, Status.OK)
    rows = [Row(key, "window", Window(0, 900_000), found, 1.0, 1, 1, True, 1) for key in keys]
    screen = Console(width=160, no_color=True, highlight=False)
    with screen.capture() as shown:
        screen.print(rows_table(rows, "UTC", 160))
    said = shown.get()
    for line, key in zip(said.splitlines()[1:], keys, strict=True):
        assert line.split("  ")[0] == key_text(key)
        assert line.isprintable()


def test_a_line_of_the_log_stays_one_line():
    record = logging.makeLogRecord(
        {"msg": "topic %s", "args": ("a\x1b[2J\u202eb\n1",), "levelname": "INFO", "name": "x"}
    )
    line = TextLines().format(record)
    assert line.isprintable() and line.endswith("topic a\\u001b[2J\\u202eb\\n1")


def test_times_are_written_as_a_question_takes_them():
    assert instant(0) == "1970-01-01T00:00:00Z" and instant(1) == "1970-01-01T00:00:00.001Z"
    assert local(0, "UTC") == "1970-01-01 00:00" and local(1500, "UTC") == "1970-01-01 00:00:01.500"
    assert local(1_761_438_600_000, "Europe/Berlin") == "2025-10-26 02:30+02:00"
    assert local(1_761_442_200_000, "Europe/Berlin") == "2025-10-26 02:30+01:00"
    assert local(1_761_445_800_000, "Europe/Berlin") == "2025-10-26 03:30"


@pytest.mark.parametrize(
    ("span_ms", "text"),
    [(900_000, "15m"), (3_600_000, "1h"), (500, "500ms"), (90_000, "90s"), (86_400_000, "1d"), (0, "0ms")],
)
def test_a_duration_is_what_a_configuration_takes(span_ms, text):
    from sfm_stream.config.tables import duration_ms

    assert duration(span_ms) == text and duration_ms(text) == span_ms
