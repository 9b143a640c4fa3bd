"""Batches that lie one behind the other in one text: where each begins is known from the one before it."""

from __future__ import annotations

import gzip

import pytest
from kafka.errors import CorruptRecordError
from support.wire_batches import batch_of, handed_on, record, stored

RECORDS = [record(number, 0, b"value", b"key") for number in range(90)]


def rows(*texts: bytes, first: int = 0) -> list[tuple[int, bytes | None]]:
    batch = handed_on(*texts, first=first)
    return list(zip(batch.offsets().tolist(), batch.values(), strict=True))


@pytest.mark.parametrize("number", [1, 90])
def test_they_are_read_as_if_each_came_by_itself(number):
    """Few records are read one by one. Only the first batch may begin in front of what is wanted."""
    one, other, last = (batch_of(RECORDS[:number], first) for first in (0, 100, 200))
    wanted = [*rows(one), *rows(other), *rows(last)]
    assert [offset for offset, _ in wanted] == [base + at for base in (0, 100, 200) for at in range(number)]
    assert rows(one + other + last) == rows(one, other + last) == rows(one + other, last) == wanted
    assert rows(one + other, last, first=number - 1) == wanted[number - 1 :]
    assert rows(last + one, first=200) == [*rows(last), *rows(one)]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("length", [-(1 << 31), -1, 0, 48, "one more", "one less", (1 << 31) - 1])
@pytest.mark.parametrize("codec", [0, 1])
def test_a_wrong_length_is_refused(codec, length, place):
    data = b"".join(RECORDS[:4])
    raws = [stored(gzip.compress(data) if codec else data, 4, first, codec) for first in (0, 4, 8)]
    was = int.from_bytes(raws[place][8:12], "big")
    says = {"one more": was + 1, "one less": was - 1}.get(length, length)
    raws[place] = raws[place][:8] + says.to_bytes(4, "big", signed=True) + raws[place][12:]
    with pytest.raises(CorruptRecordError):
        rows(b"".join(raws))
    if length == 48:
        raws[place] = raws[place][:60]  # where the next one begins, yet shorter than a header
        with pytest.raises(CorruptRecordError):
            rows(b"".join(raws))


@pytest.mark.parametrize("more", [-1, 1])
@pytest.mark.parametrize("number", [4, 90])
def test_records_that_do_not_fill_their_batch_are_refused(number, more):
    raw = batch_of(RECORDS[:number])
    wrong = raw[:57] + (number + more).to_bytes(4, "big") + raw[61:]
    for text in (wrong, raw + wrong, wrong + raw, raw + wrong + raw):
        with pytest.raises(CorruptRecordError, match="broken records"):
            rows(text)


@pytest.mark.parametrize("end", [1, 30, 60])
def test_a_part_of_a_header_is_refused(end):
    raw = batch_of(RECORDS[:4])
    for text in (raw[:end], raw + raw[:end], b""):
        with pytest.raises(CorruptRecordError, match="without the whole of its header"):
            rows(text)
