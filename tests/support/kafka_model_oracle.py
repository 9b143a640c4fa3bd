"""What must hold of the topics after any run on the model of Kafka."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from support.kafka_model import BUCKETS_OF, DECLARED, PIPELINE, Violation, World
from support.kafka_runs import BUCKETS, cell
from support.span_windows import Windows

from sfm_stream.events.partitioner import murmur2_partition
from sfm_stream.wire.codec import CloseMarker, Release
from sfm_stream.wire.codec import decode as decode_record
from sfm_stream.wire.keys import encode_key

Place = tuple[int, bytes, str, int]
"""Partition, key, span, and start of the window of a release."""


@lru_cache(1 << 12)
def decode(payload: bytes) -> Any:
    return decode_record(payload)


@lru_cache(1 << 12)
def cells(payload: bytes) -> frozenset[tuple[int, int]]:
    """The lit cells of a release, but for the last level, where the coins leave their mark."""
    sketch = decode(payload).sketch
    bits = np.unpackbits(np.frombuffer(sketch.bits, np.uint8), bitorder="little")
    lit = np.flatnonzero(bits[: sketch.shape.buckets * (sketch.shape.levels - 1)])
    return frozenset(divmod(place, sketch.shape.buckets) for place in lit.tolist())


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Violation(what)


def judge(world: World, topics: tuple[str, ...] = ("outbox", "sketches")) -> None:
    """Raises Violation. topics: those that hold every release once."""
    require_one_payload(world)
    for topic in topics:
        require_exactly_once(world, topic)
    for number, outbox in enumerate(world.cluster.topics[f"{PIPELINE}.outbox"] if "outbox" in topics else []):
        public = world.cluster.topics[f"{PIPELINE}.sketches"][number]
        both = [[entry.value for entry in log.values(committed=True)] for log in (outbox, public)]
        require(both[0] == both[1], f"partition {number}: the outbox and its copy differ")


def require_one_payload(world: World) -> None:
    """Of all that anyone can read in the public topic, aborted and open transactions too."""
    payloads: dict[bytes, set[bytes]] = defaultdict(set)
    for log in world.cluster.topics[f"{PIPELINE}.sketches"]:
        for entry in log.values(committed=False):
            payload = entry.value
            if payload is not None and isinstance(record := decode(payload), Release):
                payloads[record.release_id].add(payload)
    twice = sum(len(found) > 1 for found in payloads.values())
    require(not twice, f"{twice} releases have two payloads that can be read")


def require_exactly_once(world: World, topic: str) -> None:
    """Every window of every span and partition closed once and in order, with the releases of its events before its
    marker, and none of a longer span before those inside it.
    """
    windows = world.line.windows(world.through_ms)
    expected = _expected(world, windows)
    found: dict[Place, frozenset[tuple[int, int]]] = {}
    for number, log in enumerate(world.cluster.topics[f"{PIPELINE}.{topic}"]):
        closed = dict.fromkeys(windows, 0)
        for entry in log.values(committed=True):
            record = decode(entry.value)
            span = record.span or world.line.spans[0]
            require(record.span in windows or len(windows) == 1, f"{topic} {number}: a record of span {record.span}")
            window = windows[span][closed[span]] if closed[span] < len(windows[span]) else None
            if isinstance(record, CloseMarker):
                mine = record.start_ms, record.through_ms
                require(mine == window, f"{topic} {number}: a marker from {mine} of {span}, not {window}")
                closed[span] += 1
                base = world.line.spans[0]
                inside = sum(end <= record.through_ms for _, end in windows[base])
                require(closed[base] >= inside, f"{topic} {number}: a marker of {span} before those inside it")
            else:
                place = (number, record.key, span, record.window.start_ms)
                mine = record.window.start_ms, record.window.end_ms
                require(mine == window, f"{topic} {place}: a release behind the marker of its window")
                require(place not in found, f"{topic} {place}: committed twice")
                found[place] = cells(entry.value)
        left = {span: len(each) - closed[span] for span, each in windows.items()}
        require(not any(left.values()), f"{topic} {number}: windows that are not closed: {left}")
    require(found == expected, f"{topic}: {_difference(found, expected)}")


def _expected(world: World, windows: Mapping[str, Windows]) -> dict[Place, set[tuple[int, int]]]:
    """The cells of each release: an event is in those windows of all spans that it arrives in time for."""
    partitions, declared = world.schedule.partitions, world.schedule.declared
    expected: dict[Place, set[tuple[int, int]]] = {}
    for page in DECLARED if declared else []:
        for span, each in windows.items():
            for start, _ in each:
                expected[murmur2_partition(page.encode(), partitions), encode_key(page), span, start] = set()
    for event in world.events:
        page = event.page
        if declared and page not in DECLARED:
            continue
        for span, each in windows.items():
            for start, end in each:
                if start <= event.at_ms < end and event.arrival_ms <= end + world.line.grace_ms:
                    place = murmur2_partition(page.encode(), partitions), encode_key(page), span, start
                    expected.setdefault(place, set()).add(cell(event.user, BUCKETS_OF.get(span, BUCKETS)))
    return expected


def _difference(found: Mapping[Any, object], expected: Mapping[Any, object]) -> str:
    missing, more = expected.keys() - found.keys(), found.keys() - expected.keys()
    wrong = [place for place in expected.keys() & found.keys() if expected[place] != found[place]]
    return f"missing {sorted(missing)}, not expected {sorted(more)}, with other cells {sorted(wrong)}"
