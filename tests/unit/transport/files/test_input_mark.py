"""Marks: the same for the same bytes however they are cut and sought, another one for others."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfm_stream.errors import StateError
from sfm_stream.transport.files.input_mark import SPAN_BYTES, InputMarker
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.types import InputEnd

DATA = b"".join(b"%06d\n" % n for n in range(3000))
"""21 kB of lines of 7 bytes."""


def mark_of(data: bytes, whole: bool = False, cuts: tuple[int, ...] = ()) -> str:
    marker = InputMarker("input", whole=whole)
    for a, b in zip((0, *cuts), (*cuts, len(data)), strict=True):
        marker.take(data[a:b])
    assert marker.position == len(data)
    return marker.mark()


@settings(max_examples=60)
@given(st.integers(0, len(DATA)), st.lists(st.integers(0, len(DATA)), max_size=6), st.booleans())
def test_a_mark_does_not_tell_how_the_bytes_were_cut(size, cuts, whole):
    data = DATA[:size]
    places = tuple(sorted(min(cut, size) for cut in cuts))
    assert mark_of(data, whole, places) == mark_of(data, whole)


@pytest.mark.parametrize("size", [0, 1, SPAN_BYTES - 1, SPAN_BYTES, SPAN_BYTES + 1, 2 * SPAN_BYTES, len(DATA)])
def test_each_byte_that_a_mark_looks_at_is_looked_at(size):
    data, mark = DATA[:size], mark_of(DATA[:size])
    rng = random.Random(size)
    ends = [at for at in range(size) if at < SPAN_BYTES or at >= size - SPAN_BYTES]
    for at in {*rng.sample(ends, min(len(ends), 200)), *ends[:2], *ends[-2:]}:
        assert mark_of(data[:at] + b"x" + data[at + 1 :]) != mark
    for at in range(0, size, 97):
        assert mark_of(data[:at] + b"x" + data[at + 1 :], whole=True) != mark_of(data, whole=True)
    assert mark_of(data + b"x") != mark


def opened(path: Path, data: bytes, whole: bool = False, chunk_bytes: int = 100) -> LineInput:
    path.write_bytes(data)
    return LineInput(str(path), complete=whole, whole=whole, chunk_bytes=chunk_bytes)


def read_on(lines: LineInput) -> tuple[bytes, list[str]]:
    """The values that are left, one after the other, and the mark behind each batch."""
    values, marks = b"", []
    while not isinstance(batch := lines.read(0), InputEnd):
        if batch is not None:
            values += b"".join(value + b"\n" for value in batch.values())
            marks.append(lines.mark())
    return values, marks


@settings(max_examples=60)
@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(50, 9000), st.booleans())
def test_reading_goes_on_at_any_line_behind_which_more_was_read(
    tmp_path_factory, offset_line, marked_line, chunk_bytes, packed
):
    offset, marked = sorted((7 * offset_line, 7 * marked_line))
    stored = gzip.compress(DATA) if packed else DATA
    lines = opened(tmp_path_factory.getbasetemp() / "marked", stored, chunk_bytes=chunk_bytes)
    lines.expect(mark_of(DATA[:marked]))
    lines.seek(0, offset)
    values, marks = read_on(lines)
    assert values == DATA[offset:]
    assert not marks or marks[-1] == mark_of(DATA)
    lines.close()


@settings(max_examples=60)
@given(st.integers(0, 3000), st.integers(1, 3000), st.integers(0, 2**32), st.booleans())
def test_another_input_is_refused_before_its_first_batch(tmp_path_factory, offset_line, marked_line, seed, packed):
    offset, marked = sorted((7 * offset_line, 7 * marked_line))
    if not marked:
        return
    at = random.Random(seed).choice([n for n in range(marked) if n < SPAN_BYTES or n >= marked - SPAN_BYTES])
    if DATA[at : at + 1] == b"\n":
        at -= 1
    data = DATA[:at] + b"x" + DATA[at + 1 :]
    lines = opened(tmp_path_factory.getbasetemp() / "other", gzip.compress(data) if packed else data)
    lines.expect(mark_of(DATA[:marked]))
    lines.seek(0, offset)
    with pytest.raises(StateError, match="not the input that was read before"):  # noqa: PT012 -- some read fails
        while lines.read(0) is None:
            pass
    lines.close()


def test_lines_longer_than_what_is_kept_of_them_are_marked_whole(tmp_path):
    data = b"a\n" + b"x" * 50_000 + b"y\n" + b"b\n" + b"z" * 50_000 + b"\nc\n"
    for whole in (False, True):
        for chunk_bytes in (7, 1000, 60_000, 1 << 20):
            path = tmp_path / "long"
            path.write_bytes(data)
            lines = LineInput(str(path), complete=True, whole=whole, max_line_bytes=10, chunk_bytes=chunk_bytes)
            assert read_on(lines)[1][-1] == mark_of(data, whole)
            for stop in (2, 50_004, 50_006):
                lines = LineInput(str(path), complete=False, max_line_bytes=10, chunk_bytes=chunk_bytes)
                lines.expect(mark_of(data[:stop]))
                lines.seek(0, stop)
                assert read_on(lines)[1][-1] == mark_of(data)


def test_an_input_that_was_counted_whole_is_the_same_or_refused(tmp_path):
    mark = mark_of(DATA, whole=True)
    middle = DATA[:9000] + b"x" + DATA[9001:]
    for offset in (0, len(DATA)):
        for data, found in (
            (DATA, None),
            (middle, "bytes are others"),
            (DATA + b"more\n", "now goes on"),
            (DATA[:-7], "byte|bytes of it were read"),
            (b"", "byte|bytes of it were read"),
        ):
            for stored in (data, gzip.compress(data)):
                lines = opened(tmp_path / "whole", stored, whole=True)
                lines.expect(mark)
                lines.seek(0, offset)
                if found is None:
                    assert read_on(lines)[0] == DATA[offset:]
                    assert lines.mark() == mark
                else:
                    with pytest.raises(StateError, match=f"not the input that was counted before: .*({found})"):
                        read_on(lines)


def test_an_empty_input_that_was_counted_whole_must_stay_empty(tmp_path):
    mark = mark_of(b"", whole=True)
    for data in (b"", b"a\n"):
        lines = opened(tmp_path / "empty", data, whole=True)
        lines.expect(mark)
        lines.seek(0, 0)
        if data:
            with pytest.raises(StateError, match="now goes on"):
                read_on(lines)
        else:
            assert read_on(lines) == (b"", [])
            assert lines.mark() == mark


def test_a_mark_of_another_kind_or_form_is_refused(tmp_path):
    lines = opened(tmp_path / "f", DATA)
    for mark in (mark_of(DATA, whole=True), "ends:7", "ends:-1:" + "0" * 32, "7"):
        with pytest.raises(StateError, match="cannot be read"):
            lines.expect(mark)
