"""Records as the lines of a text: the same records, however they are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.naive_lines import naive_lines

from sfm_stream.events import lines as lines_module
from sfm_stream.events.lines import Lines, lengths_of
from sfm_stream.transport.files.line_batch import LineBatch

RECORD = st.binary(min_size=1, max_size=5).filter(lambda record: b"\n" not in record and not record.endswith(b"\r"))


def holds(lines: Lines, records: list[bytes]) -> bool:
    """Whether these are the records, by every way to them."""
    assert lengths_of(lines).tolist() == [len(record) for record in records]
    filled = [line.removesuffix(b"\r") for line in lines.text.split(b"\n")]
    assert [line for line in filled if line] == records
    return [*lines] == [lines[place] for place in range(len(lines))] == records


@given(st.lists(RECORD, max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_records_joined_and_cut(records: list[bytes], low: int, high: int) -> None:
    lines = Lines.of(records)
    assert lines is not None
    assert holds(lines, records)
    assert holds(lines[low:high], records[low:high])
    assert holds(lines[low:high][1:], records[low:high][1:])
    assert Lines.of(lines) is lines


@given(st.lists(st.tuples(RECORD, st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\n\r\n"])), max_size=8), st.data())
def test_records_of_a_text_with_blank_lines(pieces: list[tuple[bytes, bytes]], data: st.DataObject) -> None:
    text = b"".join(map(b"".join, pieces))
    lines = LineBatch(text, 7, 7 + len(text)).values()
    assert isinstance(lines, Lines)
    records = [record for _, record in naive_lines(text, True, len(text))[0]]
    low, high = sorted(data.draw(st.lists(st.integers(0, len(records)), min_size=2, max_size=2)))
    assert holds(lines, records)
    assert holds(lines[low:high], records[low:high])


@pytest.mark.parametrize("bad", [None, b"", b"\n", b"a\nb", b"a\n"])
def test_what_is_no_line_is_not_joined(bad: bytes | None) -> None:
    assert Lines.of([b"a", b"b"]) is not None
    assert Lines.of([b"a", bad, b"b"]) is None
    assert Lines.of([bad]) is None


def test_so_many_bytes_are_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "MAX_BLOCK_BYTES", 10)
    assert Lines.of([b"12345", b"67890"]) is not None
    assert Lines.of([b"12345", b"678901"]) is None


def test_a_slice_has_the_bytes_of_its_own_records_alone() -> None:
    lines = Lines(b"\na\n\nbc\nd\n", np.array([1, 4, 7]), np.array([2, 6, 8]))
    assert (lines[1:2].text, [*lines[1:2]]) == (b"bc", [b"bc"])
    assert (lines[:2].text, [*lines[:2]]) == (b"a\n\nbc", [b"a", b"bc"])
    assert (lines[2:2].text, [*lines[2:2]]) == (b"", [])
