"""What must hold of what is published from two inputs that differ by one item, on the same tape of coins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from support.counting_runs import Log, releases_of

from sfm_stream.types import Record
from sfm_stream.wire.codec import Release, WireRecord, decode
from sfm_stream.wire.keys import MARKER_KEY


def assert_one_draw(log: Log) -> None:
    """Of everything that was ever handed out, one payload for each release."""
    payloads: dict[tuple[bytes, int], set[bytes]] = defaultdict(set)
    for record in releases_of(log.offered):
        payloads[record.key, record.timestamp_ms].add(record.value)
    assert all(len(drawn) == 1 for drawn in payloads.values()), "draws: two payloads for one release"


def assert_one_cell(one: Sequence[Record], other: Sequence[Record]) -> None:
    """Two lists of records: the same messages, sizes and order, and at most one cell of one release differs."""
    outside = [
        [(r.topic, r.partition, r.key, r.timestamp_ms, len(r.value)) for r in records] for records in (one, other)
    ]
    assert outside[0] == outside[1], "messages: the outputs differ in more than bits"
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a.value != b.value]
    assert len(pairs) <= 1, "releases: the item moved more than one"
    for a, b in pairs:
        assert a.key != MARKER_KEY, "markers: they depend on the data"
        assert_one_bit(decode(a.value), decode(b.value))


def assert_one_bit(one: WireRecord, other: WireRecord) -> None:
    assert isinstance(one, Release)
    assert isinstance(other, Release)
    assert replace(one, sketch=other.sketch) == other, "release: more than its bits and its count differs"
    xor = np.frombuffer(one.sketch.bits, np.uint8) ^ np.frombuffer(other.sketch.bits, np.uint8)
    changed = int(np.bitwise_count(xor).sum())
    assert changed <= 1, "cells: the item moved more than one"
    counts = one.sketch.count, other.sketch.count
    assert (counts[0] is None) == (counts[1] is None), "count: one of two"
    if counts[0] is not None and counts[1] is not None:
        assert counts[0].epsilon == counts[1].epsilon, "count: at two prices"
        # The coins are the same, so that the noise is: the count moves with the cell, by one.
        assert abs(counts[0].value - counts[1].value) == changed, "count: it does not move with the cell"
