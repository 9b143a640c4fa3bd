"""Lines as batches: equal to the naive split for every size of chunk, in bounded memory."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference.naive_lines import naive_lines

from sfm_stream.config.tables import EventTable
from sfm_stream.errors import ConfigError, StateError, UsageError
from sfm_stream.privacy.statement import _UNITS
from sfm_stream.transport.files.line_batch import MAX_LINE_BYTES, LineBatch
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.types import InputEnd

MAX = 6


def read_all(lines: LineInput) -> tuple[list[tuple[int, bytes | None]], int, InputEnd]:
    """Records, the offset where reading stops, and the end, with the laws of every batch checked."""
    records: list[tuple[int, bytes | None]] = []
    at: int | None = None
    while not isinstance(batch := lines.read(0), InputEnd):
        if batch is None:
            continue
        assert at is None or batch.first == at
        at = batch.next_offset
        offsets = batch.offsets()
        assert offsets.dtype == np.int64
        assert batch.partition == 0
        assert batch.arrivals() is None
        assert batch.keys() == [None] * batch.count
        assert batch.count == len(offsets) == len(batch.values())
        records.extend(zip(offsets.tolist(), batch.values(), strict=True))
    return records, 0 if at is None else at, batch


def open_bytes(path: Path, data: bytes, complete: bool, chunk_bytes: int) -> LineInput:
    path.write_bytes(data)
    return LineInput(str(path), complete=complete, max_line_bytes=MAX, chunk_bytes=chunk_bytes)


line_bytes = st.lists(
    st.sampled_from([b"a", b"bc", b"\r", b"\n", b"\r\n", b"\n\n", b"xxxxx", b"longer than it may be"]), max_size=14
)


@settings(max_examples=25)
@given(pieces=line_bytes, complete=st.booleans())
@example(pieces=[b"123456\rrest\n1234567\r\n123456\r\n123456\r"], complete=True)
def test_every_chunk_size_gives_the_naive_split(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], complete: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "naive.jsonl"
    data = b"".join(pieces)
    expected, stop = naive_lines(data, complete, MAX)
    for chunk_bytes in range(1, 65):
        lines = open_bytes(path, data, complete, chunk_bytes)
        assert read_all(lines) == (expected, stop, InputEnd(0, complete))
        lines.close()


@settings(max_examples=60)
@given(pieces=line_bytes, chunk_bytes=st.integers(1, 64), packed=st.booleans(), start=st.integers(0, 14))
def test_reading_from_any_line_on_gives_the_rest(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], chunk_bytes: int, packed: bool, start: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "seek.jsonl"
    data = b"".join(pieces)
    expected, _ = naive_lines(data, True, MAX)
    lines = open_bytes(path, gzip.compress(data) if packed else data, True, chunk_bytes)
    starts = [0, *(offset for offset, _ in expected)]
    for offset in (starts[start % len(starts)], starts[-1], starts[0]):
        lines.seek(0, offset)
        assert read_all(lines)[0] == [record for record in expected if record[0] >= offset]
    lines.close()


def test_an_example_with_everything(tmp_path: Path) -> None:
    data = b"a\r\n\n\r\nbb\r\r\n123456\r\n1234567\r\n \nlast\r"
    records, stop, end = read_all(open_bytes(tmp_path / "f", data, True, 1000))
    assert records == [(0, b"a"), (6, b"bb\r"), (11, b"123456"), (19, b"123456"), (28, b" "), (30, b"last")]
    assert stop == len(data)
    assert end == InputEnd(0, True)


def test_a_last_line_without_newline_waits_for_it(tmp_path: Path) -> None:
    path = tmp_path / "f"
    lines = open_bytes(path, b"a\nbegun", False, 3)
    assert read_all(lines) == ([(0, b"a")], 2, InputEnd(0, False))
    assert read_all(lines)[0] == []
    with path.open("ab") as file:
        file.write(b"!\nc\n")
    assert read_all(lines) == ([(2, b"begun!"), (9, b"c")], 11, InputEnd(0, False))


def test_a_last_line_without_newline_counts_where_the_input_is_complete(tmp_path: Path) -> None:
    lines = open_bytes(tmp_path / "f", b"a\nlast", True, 3)
    assert read_all(lines) == ([(0, b"a"), (2, b"last")], 6, InputEnd(0, True))
    assert lines.read(0) == InputEnd(0, True)


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("data", [b"", gzip.compress(b"")], ids=["plain", "gzip"])
def test_an_empty_file_ends(tmp_path: Path, data: bytes, complete: bool) -> None:
    lines = open_bytes(tmp_path / "f", data, complete, 100)
    assert read_all(lines) == ([], 0, InputEnd(0, complete))


def test_a_growing_file_that_was_empty_at_first_may_be_gzip(tmp_path: Path) -> None:
    lines = open_bytes(tmp_path / "f", b"", False, 100)
    assert read_all(lines)[0] == []
    (tmp_path / "f").write_bytes(gzip.compress(b"a\n"))
    assert read_all(lines)[0] == [(0, b"a")]


def test_blank_lines_are_no_records_but_move_on(tmp_path: Path) -> None:
    lines = open_bytes(tmp_path / "f", b"\n\r\n\n", False, 100)
    batch = lines.read(0)
    assert isinstance(batch, LineBatch)
    assert (batch.count, batch.first, batch.next_offset) == (0, 0, 4)
    assert list(batch.values()) == []
    assert batch.offsets().shape == (0,)


@pytest.mark.parametrize("ending", [b"\nafter\n", b"\n", b""])
def test_a_line_too_long_to_be_kept_is_never_in_memory_whole(tmp_path: Path, ending: bytes) -> None:
    length = 48 << 20
    path = tmp_path / "f"
    with path.open("wb") as file:
        file.write(b"before\n")
        for _ in range(48):
            file.write(b"x" * (1 << 20))
        file.write(ending)
    lines = LineInput(str(path), complete=True, max_line_bytes=1 << 16, chunk_bytes=1 << 17)
    tracemalloc.start()
    records, stop, _ = read_all(lines)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 2 << 20
    assert records[:2] == [(0, b"before"), (7, b"x" * (1 << 16))]
    assert records[2:] == ([(8 + length, b"after")] if b"after" in ending else [])
    assert stop == 7 + length + len(ending)


def test_a_compressed_flood_is_not_unpacked_at_once(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with gzip.open(path, "wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    lines = LineInput(str(path), complete=True, max_line_bytes=1 << 16, chunk_bytes=1 << 17)
    tracemalloc.start()
    records, _, _ = read_all(lines)
    assert tracemalloc.get_traced_memory()[1] < 2 << 20
    tracemalloc.stop()
    assert records == [(0, bytes(1 << 16))]


def test_a_file_shorter_than_the_position_stops_with_both_numbers(tmp_path: Path) -> None:
    for data, size in ((b"a\nb\n", 4), (gzip.compress(b"a\nb\n"), 4), (b"", 0)):
        lines = open_bytes(tmp_path / "f", data, True, 100)
        lines.seek(0, 1000)
        with pytest.raises(StateError, match=rf"byte 1000.* {size} bytes.*truncated or replaced"):
            read_all(lines)


def test_a_file_that_shrinks_while_it_is_read_stops(tmp_path: Path) -> None:
    path = tmp_path / "f"
    lines = open_bytes(path, b"a\nb\nc\n", False, 100)
    read_all(lines)
    os.truncate(path, 2)
    with pytest.raises(StateError, match=r"has 2 bytes now, but 6 were read"):
        lines.read(0)


@pytest.mark.parametrize("packed", [False, True])
def test_a_position_inside_a_line_shows_that_the_input_was_replaced(tmp_path: Path, packed: bool) -> None:
    data = b"abc\ndef\n"
    lines = open_bytes(tmp_path / "f", gzip.compress(data) if packed else data, True, 100)
    lines.seek(0, 5)
    with pytest.raises(StateError, match="no line starts at the committed byte 5"):
        read_all(lines)


def test_a_finished_input_is_found_finished_and_must_not_have_gone_on(tmp_path: Path) -> None:
    lines = open_bytes(tmp_path / "f", b"abc\nlast", True, 100)
    lines.seek(0, 8)
    assert read_all(lines)[::2] == ([], InputEnd(0, True))
    lines = open_bytes(tmp_path / "f", b"abc\nlast\nmore\n", True, 100)
    lines.seek(0, 8)
    with pytest.raises(StateError, match="went on after it had been declared complete"):
        read_all(lines)


def test_progress_is_in_bytes_on_disk(tmp_path: Path) -> None:
    data = b"".join(b"line %d\n" % n for n in range(20_000))
    for stored in (data, gzip.compress(data)):
        lines = open_bytes(tmp_path / "f", stored, True, 1 << 12)
        assert (lines.position(), lines.size()) == (0, len(stored))
        lines.read(0)
        assert 0 < lines.position() < len(stored)
        read_all(lines)
        assert lines.position() == lines.size() == len(stored)


@pytest.mark.parametrize("case", ["missing", "directory", "forbidden", "nul"])
def test_what_cannot_be_opened_names_the_setting(tmp_path: Path, case: str) -> None:
    path = str(tmp_path / "f")
    if case == "directory":
        os.mkdir(path)
    elif case == "nul":
        path += "\0"
    elif case == "forbidden":
        if os.geteuid() == 0:
            pytest.skip("root may read everything")
        Path(path).write_bytes(b"")
        os.chmod(path, 0)
    with pytest.raises(ConfigError, match=r"^input\.path: "):
        LineInput(path, complete=True)


def test_other_compressions_are_refused_by_name(tmp_path: Path) -> None:
    lines = open_bytes(tmp_path / "f", b"\x28\xb5\x2f\xfd rest", True, 100)
    with pytest.raises(ConfigError, match=r"input\.path: .* zstd-compressed"):
        lines.read(0)


def test_arguments_out_of_range_are_refused(tmp_path: Path) -> None:
    lines = open_bytes(tmp_path / "f", b"", True, 100)
    for partition, offset in ((1, 0), (0, -1)):
        with pytest.raises(UsageError):
            lines.seek(partition, offset)
    with pytest.raises(UsageError):
        LineInput(str(tmp_path / "f"), complete=True, chunk_bytes=0)


def test_a_line_is_kept_whole_where_any_configuration_may_count_it_and_readers_know_the_bound() -> None:
    bounds = [limit.le for limit in EventTable.model_fields["max_record_bytes"].metadata if hasattr(limit, "le")]
    assert len(bounds) == 1
    assert bounds[0] < MAX_LINE_BYTES
    told = f"a line of more than {MAX_LINE_BYTES >> 20} MiB"
    page = (Path(__file__).parents[4] / "docs" / "privacy.md").read_text("utf-8")
    assert told in page
    assert all(told in _UNITS["blanked", whole] for whole in (False, True))
