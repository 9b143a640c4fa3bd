"""What must hold of the topics after any run on the model of Kafka."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from support.kafka_model import DECLARED, GRACE_MS, PIPELINE, START_MS, Violation, World
from support.kafka_runs import BUCKETS, LEVELS, MINUTE_MS, expected_cells

from sfm_stream.events.partitioner import murmur2_partition
from sfm_stream.wire.codec import CloseMarker, Release
from sfm_stream.wire.codec import decode as decode_record
from sfm_stream.wire.keys import encode_key


@lru_cache(1 << 12)
def decode(payload: bytes) -> Any:
    return decode_record(payload)


@lru_cache(1 << 12)
def cells(payload: bytes) -> frozenset[tuple[int, int]]:
    """The lit cells of a release, but for the last level, where the coins leave their mark."""
    bits = np.unpackbits(np.frombuffer(decode(payload).sketch.bits, np.uint8), bitorder="little")
    return frozenset(divmod(place, BUCKETS) for place in np.flatnonzero(bits[: BUCKETS * (LEVELS - 1)]).tolist())


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
    """Every window of every partition closed once and in order, with the releases of its events before its marker."""
    partitions, counted = (
        world.schedule.partitions,
        [
            event
            for event in world.events
            if event.arrival_ms <= event.at_ms - event.at_ms % MINUTE_MS + MINUTE_MS + GRACE_MS
        ],
    )
    expected = {
        (murmur2_partition(page, partitions), encode_key(page.decode()), start): lit
        for (page, start), lit in expected_cells(counted, MINUTE_MS, START_MS, world.through_ms).items()
        if not world.schedule.declared or page.decode() in DECLARED
    }
    for page in DECLARED if world.schedule.declared else []:
        for start in range(START_MS, world.through_ms, MINUTE_MS):
            expected.setdefault((murmur2_partition(page.encode(), partitions), encode_key(page), start), set())
    found: dict[tuple[int, bytes, int], frozenset[tuple[int, int]]] = {}
    for number, log in enumerate(world.cluster.topics[f"{PIPELINE}.{topic}"]):
        border = START_MS
        for entry in log.values(committed=True):
            record = decode(entry.value)
            if isinstance(record, CloseMarker):
                require(record.start_ms == border, f"{topic} {number}: a marker from {record.start_ms}, not {border}")
                require(record.through_ms == border + MINUTE_MS, f"{topic} {number}: a marker of several windows")
                border = record.through_ms
            else:
                place = (number, record.key, record.window.start_ms)
                require(record.window.start_ms == border, f"{topic} {place}: a release behind the marker of its window")
                require(place not in found, f"{topic} {place}: committed twice")
                found[place] = cells(entry.value)
        require(border == world.through_ms, f"{topic} {number}: closed through {border}, not {world.through_ms}")
    require(found == expected, f"{topic}: {_difference(found, expected)}")


def _difference(found: Mapping[Any, object], expected: Mapping[Any, object]) -> str:
    missing, more = expected.keys() - found.keys(), found.keys() - expected.keys()
    wrong = [place for place in expected.keys() & found.keys() if expected[place] != found[place]]
    return f"missing {sorted(missing)}, not expected {sorted(more)}, with other cells {sorted(wrong)}"
