"""How keys are written: nothing hides in them, no two look the same, and each reads back."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from support.hostile_text import HOSTILE, PLAIN

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.key_notation import key_of_text, key_text
from sfm_stream.cli.screen import answer_table
from sfm_stream.estimation.estimate import Estimate, Status
from sfm_stream.readable import visible
from sfm_stream.types import Window

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
    assert key_of_text(key_text(key)) == key
    assert type(key_of_text(key_text(key))) is tuple


@given(st.text())
def test_nothing_hides_in_a_key(text):
    shown = key_text((text,))
    assert not [c for c in shown if unicodedata.category(c)[0] == "C" or unicodedata.category(c) in ("Zl", "Zp")]
    assert not set(shown) & set("\u00a0\u3000\u034f\u3164\u2800\ufe0f\U000e0100")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_cannot_be_seen_is_written_as_json_writes_it(text):
    assert key_text((text,)) == f'"{visible(text)}"'


def test_plain_keys_stay_as_they_are():
    for text in PLAIN:
        assert key_text((text,)) in (text, f'"{text}"')
    assert key_text(("/x/[/y]",)) == "/x/[/y]"
    assert key_text(("/post/[id]",)) == "/post/[id]"
    assert key_text((":smile:",)) == ":smile:"
    assert key_text(("/",)) == "/"


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
    assert key_of_text(key_text(one)) == one
    assert key_of_text(key_text(other)) == other


def test_the_notation_of_the_docs():
    assert key_text((0,)) == "0"
    assert key_text(("0",)) == '"0"'
    assert key_text(()) == "(all)"
    assert key_text(("",)) == '""'
    assert key_text(("a", "1 / x")) == 'a / "1 / x"'
    assert key_text(("a / 1", "x")) == '"a / 1" / x'
    assert key_text(("\x1b[0m",)) == '"\\u001b[0m"'


def test_a_table_prints_keys_and_no_markup():
    keys = [("/x/[/y]",), ("/post/[id]",), (":smile:",), ("[bold]b[/bold]",), *((text,) for text in HOSTILE.values())]
    found = Estimate(5.0, 1.0, 3.0, 7.0, Status.OK)
    rows = [
        AnswerRow(key, "window", Window(0, 900_000), found, 1.0, "raw", {"15m": 1}, 1, True, 0, (), 1) for key in keys
    ]
    screen = Console(width=160, no_color=True, highlight=False)
    with screen.capture() as shown:
        screen.print(answer_table(rows, "UTC", 160))
    said = shown.get()
    for line, key in zip(said.splitlines()[1:], keys, strict=True):
        assert line.split("  ")[0] == key_text(key)
        assert line.isprintable()
