"""The copy keeps the order of time stamps over source partitions, and loses and doubles nothing."""

from __future__ import annotations

import json
import random

import pytest
from reference.memory_batch import MemoryBatch
from support.kafka_runs import CONFIG, DEFAULTS

from sfm_stream.app import repartition
from sfm_stream.app.repartition import Repartition
from sfm_stream.config import load_config
from sfm_stream.types import Assigned, InputEnd, Revoked


class Log:
    """A transport whose events a test gives; what is committed is kept, unless it is told to refuse."""

    partitions = 2

    def __init__(self):
        self.events, self.refused, self.records, self.positions = [], 0, [], {}

    def poll(self):
        events, self.events = self.events, []
        return events

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
def copy(tmp_path):
    path = tmp_path / "app.toml"
    path.write_text(
        CONFIG.format(**DEFAULTS | {"bootstrap": '["nowhere:1"]', "topic": "to", "id": "copy", "room": 4096})
    )
    log = Log()
    return log, Repartition(load_config(path), log, 3)


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


def test_with_much_in_hand_nothing_is_waited_for(copy, monkeypatch):
    monkeypatch.setattr(repartition, "_HELD_BYTES", 8000)
    assert turn(copy, Assigned(0, None), Assigned(1, None), batch(0, 0, [1, 2])) == []
    copied = turn(copy, batch(0, 2, list(range(3, 400))))
    assert 0 < len(copied) < 399, "a bounded rest waits"


def test_what_a_refused_transaction_held_is_copied_once_by_the_next(copy):
    copy[0].refused = 1
    assert turn(copy, Assigned(0, None), batch(0, 0, list(range(300))), InputEnd(0, False)) == []
    assert turn(copy) == list(range(300))
    assert copy[0].positions == {0: 300}
