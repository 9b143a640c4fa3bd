"""Gzip input: members, padding, and damage, which must never pass for the end."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pytest

from sfm_stream.errors import StateError
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.types import InputEnd

DATA = b"".join(b'{"n": %d, "text": "%d"}\n' % (n, n * 7919 % 10007) for n in range(3_000))
RECORDS = DATA.splitlines()


def read_values(path: Path, chunk_bytes: int = 5_000, complete: bool = True) -> list[bytes | None]:
    lines = LineInput(str(path), complete=complete, chunk_bytes=chunk_bytes)
    values: list[bytes | None] = []
    while not isinstance(batch := lines.read(0), InputEnd):
        if batch is not None:
            values += batch.values()
    assert batch.complete is complete
    lines.close()
    return values


@pytest.mark.parametrize("chunk_bytes", [1_000, 4_096, 1 << 20])
def test_members_follow_one_another_with_lines_across_them(tmp_path: Path, chunk_bytes: int) -> None:
    path = tmp_path / "no-suffix"
    cuts = [0, 10, 11, 20_000, 20_001, len(DATA)]
    path.write_bytes(b"".join(gzip.compress(DATA[a:b]) for a, b in pairwise(cuts)) + gzip.compress(b""))
    assert read_values(path, chunk_bytes) == RECORDS


def test_zeros_after_the_last_member_are_padding(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(gzip.compress(DATA) + bytes(1000))
    assert read_values(path) == RECORDS


def test_members_appended_later_are_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(gzip.compress(b"a\n"))
    lines = LineInput(str(path), complete=False)
    found = []
    for text in (b"", b"b\n"):
        with path.open("ab") as file:
            file.write(gzip.compress(text))
        while not isinstance(batch := lines.read(0), InputEnd):
            found += batch.values() if batch else []
    assert found == [b"a", b"b"]


@pytest.mark.parametrize("complete", [True, False])
def test_a_truncated_file_is_no_end_wherever_it_is_cut(tmp_path: Path, complete: bool) -> None:
    path = tmp_path / "cut.gz"
    data = b"".join(b"line %d\n" % n for n in range(40))
    stored = gzip.compress(data)
    for size in range(3, len(stored)):
        path.write_bytes(stored[:size])
        lines = LineInput(str(path), complete=complete, chunk_bytes=64)
        values: list[bytes | None] = []
        says = rf"cut\.gz: the gzip data ends in the middle, at byte {size} of the file"
        with pytest.raises(StateError, match=says):  # noqa: PT012 -- some read fails, not the first
            while (batch := lines.read(0)) is None or not isinstance(batch, InputEnd):
                values += batch.values() if batch else []
        # What was given out is a true beginning: whole lines only.
        assert values == data.splitlines()[: len(values)]
        lines.close()


def test_a_truncated_second_member_is_no_end(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(gzip.compress(DATA) + gzip.compress(DATA)[:-1])
    with pytest.raises(StateError, match="not taken as the input's end"):
        read_values(path)


DAMAGE = {
    "block": r"the gzip data is damaged between bytes {0} and {1} of the file \(byte 0 of its content\): Error -3",
    "middle": r"the (checksum of the gzip member that begins at byte 0|gzip data is damaged between)",
    "checksum": r"the checksum of the gzip member that begins at byte {0} of the file is not that of its content",
    "length": r"the length of the gzip member that begins at byte {0} of the file is not that of its content",
    "garbage": r"what follows the gzip member that ends at byte {1} of the file is no gzip data",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_stops_with_what_is_wrong_the_place_and_a_remedy(tmp_path: Path, damage: str) -> None:
    stored = bytearray(gzip.compress(DATA))
    size = len(stored)
    if damage == "block":
        stored[10] |= 7  # a kind of block that there is not
    elif damage == "middle":
        stored[len(stored) // 2 : len(stored) // 2 + 40] = bytes(40)
    elif damage == "checksum":
        stored[-6] ^= 1
    elif damage == "length":
        stored[-1] ^= 1
    else:
        stored += b"garbage"
    path = tmp_path / "bad.gz"
    path.write_bytes(stored)
    with pytest.raises(StateError, match=rf"bad\.gz: {DAMAGE[damage].format(0, size)}.*'gzip -t'"):
        read_values(path)


def test_the_damaged_member_is_named_by_its_place(tmp_path: Path) -> None:
    first, second = gzip.compress(b"a\n"), bytearray(gzip.compress(b"b\n"))
    second[-6] ^= 1
    path = tmp_path / "bad.gz"
    path.write_bytes(first + bytes(second))
    with pytest.raises(StateError, match=rf"the gzip member that begins at byte {len(first)} of the file"):
        read_values(path)


def test_one_byte_at_a_time_equals_all_at_once(tmp_path: Path) -> None:
    path = tmp_path / "f"
    # Long repeats leave output inside zlib when all input is used up already.
    path.write_bytes(gzip.compress(b"x" * 700 + b"\n" + b"y" * 300 + b"\n"))
    assert read_values(path, chunk_bytes=1) == read_values(path) == [b"x" * 700, b"y" * 300]
