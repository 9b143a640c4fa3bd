"""The copy keeps the order of time stamps over source partitions, places by the key, and loses and doubles nothing."""

from __future__ import annotations

import json
import random
import zlib

import pytest
from kafka.partitioner import murmur2 as java_murmur2
from reference.memory_batch import MemoryBatch
from support.kafka_runs import CONFIG, DEFAULTS
from unit.events.test_hostile_neighbours import ITEMS
from unit.events.test_hostile_neighbours import value as event_value

from sfm_stream.config.config import load_config
from sfm_stream.types import Assigned, InputEnd, Revoked
from sfm_stream.workers import repartition
from sfm_stream.workers.repartition import RepartitionWorker


class Log:
    """A transport whose events a test gives; what is committed is kept, unless it is told to refuse."""

    partitions = 2

    def __init__(self):
        self.events, self.refused, self.records, self.positions = [], 0, [], {}
        self.held: set[int] = set()

    def poll(self):
        events, self.events = self.events, []
        return events

    def hold(self, partitions):
        self.held = set(partitions)

    def commit(self, step):
        if self.refused:
            self.refused -= 1
            return False
        self.records += step.publish
        self.positions |= {commit.partition: commit.offset for commit in step.commit}
        return True


def value(number: int) -> bytes:
    return json.dumps({"page": f"p{number % 7}", "user": f"u{number}", "at": number}).encode()


def batch(partition: int, first: int, stamps: list[int]) -> MemoryBatch:
    return MemoryBatch([value(stamp) for stamp in stamps], partition=partition, first=first, arrival_ms=stamps)


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "app.toml"
    path.write_text(
        CONFIG.format(**DEFAULTS | {"bootstrap": '["nowhere:1"]', "topic": "to", "id": "copy", "room": 4096})
    )
    return load_config(path)


@pytest.fixture
def copy(config):
    log = Log()
    return log, RepartitionWorker(config, log, 3)


def turn(copy, *events):
    log, worker = copy
    log.events += events
    worker.tick(lambda: False)
    return [record.timestamp_ms for record in log.records]


def test_records_are_copied_in_the_order_of_their_time_stamps_over_partitions(copy):
    stamps = random.Random(1).sample(range(1000), 400)
    mine, other = sorted(stamps[:150]), sorted(stamps[150:])
    assert turn(copy, Assigned(0, None), Assigned(1, None), batch(0, 0, mine)) == []
    ended = (InputEnd(0, False), InputEnd(1, False))
    assert turn(copy, batch(1, 0, other), *ended) == sorted(stamps)
    assert copy[0].positions == {0: 150, 1: 250}
    assert all(record.value == value(record.timestamp_ms) for record in copy[0].records)


def test_a_partition_that_is_not_at_its_end_is_waited_for(copy):
    assert turn(copy, Assigned(0, None), Assigned(1, None), batch(0, 0, [1, 5]), batch(1, 0, [2, 3])) == [1, 2, 3]
    assert turn(copy, batch(1, 2, [4, 6])) == [1, 2, 3, 4, 5]
    assert turn(copy, InputEnd(0, False)) == [1, 2, 3, 4, 5, 6]


def test_a_partition_given_up_is_not_waited_for_and_its_records_are_left_alone(copy):
    turn(copy, Assigned(0, None), Assigned(1, None), batch(0, 0, [1, 5]), batch(1, 0, [2, 7]))
    assert turn(copy, Revoked(1), InputEnd(0, False)) == [1, 2, 5]
    assert copy[0].positions == {0: 2, 1: 1}


class Sources(Log):
    """Brings a batch of each partition with every poll, but for those that are held or still silent."""

    def __init__(self, batches: dict[int, list[MemoryBatch]]):
        super().__init__()
        self.batches, self.silent = batches, set()
        self.events = [Assigned(partition, None) for partition in batches]

    def poll(self):
        found = super().poll()
        for partition, batches in self.batches.items():
            if partition not in self.held | self.silent:
                found.append(batches.pop(0) if batches else InputEnd(partition, False))
        return found


def in_batches(partition: int, stamps: list[int], size: int) -> list[MemoryBatch]:
    return [batch(partition, at, stamps[at : at + size]) for at in range(0, len(stamps), size)]


def in_hand(worker: RepartitionWorker) -> int:
    return sum(source.size_bytes for source in worker.partitions.values())


BATCH_BYTES = 20 * 600
"""More than a batch of 20 takes in hand."""


def test_with_much_in_hand_the_order_is_kept_and_only_what_is_waited_for_is_read(config, monkeypatch):
    monkeypatch.setattr(repartition, "_PAUSE_BYTES", 3 * BATCH_BYTES)
    stamps = list(range(3000))
    of = {0: stamps[::3], 1: stamps[1::3], 2: stamps[2::3]}
    log = Sources({partition: in_batches(partition, mine, 20) for partition, mine in of.items()})
    log.silent = {2}
    worker = RepartitionWorker(config, log, 3)
    for _ in range(50):
        worker.tick(lambda: False)
        assert in_hand(worker) <= 5 * BATCH_BYTES, "the bound, and a batch of each"
    assert log.records == [], "nothing may pass what partition 2 has yet to show"
    assert log.held == {0, 1}
    assert len(log.batches[0]) > 40
    log.silent = set()
    while any(log.batches.values()) or in_hand(worker):
        worker.tick(lambda: False)
        assert in_hand(worker) <= 6 * BATCH_BYTES
    assert [record.timestamp_ms for record in log.records] == stamps
    assert log.held == set()


def test_partitions_of_unequal_pace_are_copied_in_order_within_the_bound(config, monkeypatch):
    """One lies in the past of the other: it comes first, and the other waits in the log, not in memory."""
    monkeypatch.setattr(repartition, "_PAUSE_BYTES", 2 * BATCH_BYTES)
    log = Sources({0: in_batches(0, list(range(1000, 2000)), 20), 1: in_batches(1, list(range(1000)), 20)})
    worker = RepartitionWorker(config, log, 3)
    most = 0
    while any(log.batches.values()) or in_hand(worker):
        worker.tick(lambda: False)
        most = max(most, in_hand(worker))
    assert [record.timestamp_ms for record in log.records] == list(range(2000))
    assert most <= 4 * BATCH_BYTES


def test_a_partition_that_comes_back_is_read_and_held_anew(config, monkeypatch):
    monkeypatch.setattr(repartition, "_PAUSE_BYTES", BATCH_BYTES // 2)
    log = Sources({0: in_batches(0, list(range(200)), 20), 1: in_batches(1, list(range(200, 300)), 20)})
    log.silent = {1}
    worker = RepartitionWorker(config, log, 3)
    worker.tick(lambda: False)
    assert log.held == {0}
    log.events, log.held = [Revoked(0), Assigned(0, None)], set()  # the transport forgets with the assignment
    log.batches[0] = in_batches(0, list(range(200)), 20)
    worker.tick(lambda: False)
    assert log.held == {0}, "though it was held before"
    log.silent = set()
    while any(log.batches.values()) or in_hand(worker):
        worker.tick(lambda: False)
    assert [record.timestamp_ms for record in log.records] == list(range(300))


def test_the_log_says_what_is_waited_for_once_in_a_while(config, monkeypatch, caplog):
    log = Sources({0: in_batches(0, [1, 2, 3], 20), 1: []})
    log.silent = {1}
    worker = RepartitionWorker(config, log, 3)
    worker.tick(lambda: False)
    assert not caplog.records
    monkeypatch.setattr(worker, "_warn_at", 0.0)
    for _ in range(5):
        worker.tick(lambda: False)
    [said] = caplog.messages
    assert "partitions [1] have neither shown a record nor their end" in said
    monkeypatch.setattr(worker, "_warn_at", 0.0)
    log.silent = set()
    worker.tick(lambda: False)
    assert len(log.records) == 3
    assert len(caplog.records) == 1, "what is at its end is not waited for"


# Where a record goes


class OldKeys(MemoryBatch):
    """Keyed by something else than the counting key."""

    def keys(self):
        return [b"old key"] * self.count


def placed(config, record: bytes | None, first: int = 0):
    log = Log()
    worker = RepartitionWorker(config, log, 5)
    log.events = [Assigned(0, None), OldKeys([record], [7], first), InputEnd(0, False)]
    worker.tick(lambda: False)
    [copied] = log.records
    assert (copied.value, copied.timestamp_ms) == (record or b"", 7)
    return copied.partition, copied.key


def of_page(page: str, count: int = 5):
    return (java_murmur2(page.encode()) & 0x7FFFFFFF) % count, page.encode()


@pytest.mark.parametrize("what", ITEMS)
def test_a_record_goes_where_it_goes_with_its_item_blanked(config, what):
    for page in ("p0", "p1", "p2", "p3"):
        for order in range(3):
            places = {placed(config, record(ITEMS[what][1], page, order), first) for first in (0, 1)}
            assert places == {placed(config, record(b"null", page, order))} == {of_page(page)}


def record(item: bytes, page: str, order: int, at: bytes = b"5") -> bytes:
    raw = event_value(item, 5, key=b'"%b"' % page.encode(), order=order).replace(b'"t":5', b'"at":%b' % at)
    return raw.replace(b'"k":', b'"page":').replace(b'"i":', b'"user":')


TIMES = [b"null", b"true", b'"x"', b"1", b"-1", b"9" * 30, b"NaN", b"1.", b"[1]", b'5,"at":6']


@pytest.mark.parametrize("at", TIMES)
def test_no_time_moves_a_record_either(config, at):
    for page in ("p0", "p1", "p2", "p3"):
        assert placed(config, record(b'"X"', page, 0, at)) == of_page(page)


@pytest.mark.parametrize(
    "value",
    [
        b"\x00abcd" + record(b'"X"', "p3", 0),
        b"x" + record(b'"X"', "p3", 0),
        record(b'"X"', "p3", 0) + b"x",
        record(b'"X"', "p3", 0)[:-1] + b',"other":"\xff"}',
        record(b'"X"', "p3", 0)[:-1] + b",",
        b'{"page":"p3"}',
    ],
)
def test_nor_does_anything_else(config, value):
    assert placed(config, value) == of_page("p3")


def test_a_key_too_long_to_be_counted_places_its_record(config):
    page = "p" * 2000
    assert placed(config, record(b'"X"', page, 0)) == of_page(page)
    assert placed(config, record(b"NaN", page, 0)) == of_page(page)


@pytest.mark.parametrize(
    "value",
    [
        *(None, b"no JSON", b"{}", b'{"page":null}', b'{"page":1.5}', b'{"page":[1]}', b'{"page":"a","page":"a"}'),
        *(b'{"page":%d}' % 2**63, b'{"page":"\\ud800"}', b'{"page":"\xff"}', b'{"user":"u}', b'["page"]'),
    ],
)
def test_where_the_key_is_not_readable_the_old_key_places_the_record(config, value):
    assert placed(config, value) == placed(config, value, first=3) == (zlib.crc32(b"old key") % 5, b"old key")


def test_what_a_refused_transaction_held_is_copied_once_by_the_next(copy):
    copy[0].refused = 1
    assert turn(copy, Assigned(0, None), batch(0, 0, list(range(300))), InputEnd(0, False)) == []
    assert turn(copy) == list(range(300))
    assert copy[0].positions == {0: 300}
