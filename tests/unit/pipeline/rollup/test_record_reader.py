"""Records of the sketch topic are read as `decode` reads them, whichever came before."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest
from support.rollup_cases import closed, quarter, windows
from support.rollup_runs import release

from sfm_stream.errors import FormatError
from sfm_stream.pipeline.rollup import record_reader
from sfm_stream.pipeline.rollup.record_reader import RecordReader
from sfm_stream.sketch.sfm import NoisyCount
from sfm_stream.wire.codec import WireRecord, decode_at


def log() -> list[bytes]:
    """Three windows of many keys, plain, named and counted, markers between them."""
    found = []
    for number in range(3):
        count = NoisyCount(-number, Decimal("0.5"))
        for key in range(9):
            found += windows(number, key=key)
            found += windows(number, key=key, epoch=2, span="15m")
        found += [release(quarter(number), key, epoch=3, span="15m", count=count) for key in range(9)]
        found += [closed(number, number + 1), closed(number, number + 1, epoch=2, span="15m", spans=("15m",))]
    return found


def read(reader: RecordReader, payload: bytes) -> WireRecord | tuple[str, str, str]:
    try:
        return reader.read("here", payload)
    except FormatError as error:
        return error.place, error.field, error.problem


def expected(payload: bytes) -> WireRecord | tuple[str, str, str]:
    try:
        return decode_at("here", payload)
    except FormatError as error:
        return error.place, error.field, error.problem


@pytest.mark.parametrize("shuffled", [False, True])
def test_each_record_is_what_decode_gives(shuffled: bool) -> None:
    records, reader = log(), RecordReader()
    if shuffled:
        random.Random(1).shuffle(records)
    assert [reader.read("here", payload) for payload in records] == [decode_at("here", each) for each in records]


def test_bytes_that_were_changed_are_refused_as_decode_refuses_them() -> None:
    reader, rng = RecordReader(), random.Random(2)
    for payload in log():
        at = rng.randrange(len(payload))
        changed = payload[:at] + bytes([payload[at] ^ 1 << rng.randrange(8)]) + payload[at + 1 :]
        for each in (payload, changed, payload[:at], payload + b"\0"):
            assert read(reader, each) == expected(each)


def test_releases_of_one_window_are_decoded_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    monkeypatch.setattr(
        record_reader, "decode_at", lambda place, payload: decoded.append(payload) or decode_at(place, payload)
    )
    reader, records = RecordReader(), [*windows(0, key="a"), *windows(0, key="b"), *windows(0, key="c"), *windows(0)]
    assert [reader.read("here", payload) for payload in records] == [decode_at("here", each) for each in records]
    assert decoded == records[:2]
