"""A partition of the ingest worker: its table of stages, and what each stage lets through."""

from __future__ import annotations

import json
from itertools import product

from reference.memory_batch import MemoryBatch
from support.embedded_runs import IN_TIME, MINUTE_MS, START_MS, NoFlips, write_config

from sfm_stream.config.config import load_config
from sfm_stream.types import Assigned, InputEnd, Reason, Revoked
from sfm_stream.units import FOREVER_MS
from sfm_stream.workers.ingest import IngestWorker
from sfm_stream.workers.ingest_partition import TRANSITIONS, Fact, Stage

DAY_MS = 1440 * MINUTE_MS


def test_the_table_has_a_way_into_every_stage_and_out_of_each_but_none_back_to_waiting():
    assert {stage for stage, _ in TRANSITIONS} == set(Stage)
    assert set(TRANSITIONS.values()) == {Stage.COUNTING, Stage.UNPROVEN}
    assert TRANSITIONS[Stage.WAITING, Fact.FIRST_BORDER] is Stage.COUNTING
    for stage in (Stage.COUNTING, Stage.UNPROVEN):
        assert TRANSITIONS[stage, Fact.MARK_EXPECTED] is Stage.UNPROVEN
        assert TRANSITIONS[stage, Fact.MARK_COMPARED] is Stage.COUNTING


def test_a_first_border_is_fixed_once_and_no_mark_is_looked_at_before():
    absent = set(product(Stage, Fact)) - set(TRANSITIONS)
    assert absent == {
        (Stage.COUNTING, Fact.FIRST_BORDER),
        (Stage.UNPROVEN, Fact.FIRST_BORDER),
        (Stage.WAITING, Fact.MARK_COMPARED),
        (Stage.WAITING, Fact.MARK_EXPECTED),
    }


class Transport:
    """One partition; gives what it is told to and keeps what is committed."""

    partitions = 1

    def __init__(self):
        self.events, self.stored = [], []

    def poll(self):
        events, self.events = self.events, []
        return events

    def seek(self, partition, offset): ...

    def commit(self, step):
        self.stored.append(step)
        return True


class Marks:
    """The mark of an input, as a test sets it."""

    def __init__(self):
        self.expected, self.now = None, "ends:0"

    def expect(self, mark):
        self.expected, self.now = mark, None

    def mark(self):
        return self.now


class Ingest:
    """A worker on one partition. start: whether window.start is set, at START_MS."""

    def __init__(self, folder, marks=None, start=False):
        path = write_config(folder, **IN_TIME)
        if not start:
            path.write_text(path.read_text().replace("start = 2026-01-01T00:00:00Z\n", ""))
        config = load_config(path)
        self.transport = Transport()
        self.worker = IngestWorker(
            config, self.transport, "in", START_MS + DAY_MS, lambda partition: FOREVER_MS, NoFlips(), marks=marks
        )

    def turn(self, *events):
        self.transport.events += events
        self.worker.tick()
        return self.worker.partitions.get(0)


def views(*minutes, first=0):
    lines = [json.dumps({"page": "p", "user": f"u{m}", "at": START_MS + m * MINUTE_MS}).encode() for m in minutes]
    return MemoryBatch(lines, [START_MS + m * MINUTE_MS for m in minutes], first)


def without_time(count):
    return MemoryBatch([b"{"] * count, [-1] * count)


def test_a_partition_waits_until_a_record_has_a_time(tmp_path):
    ingest = Ingest(tmp_path)
    partition = ingest.turn(Assigned(0))
    assert (partition.counter, partition.releasing) == (None, None)
    ingest.turn(without_time(3))
    assert (partition.counter, ingest.worker.report.dropped[Reason.MALFORMED]) == (None, 3)
    ingest.turn(views(1, 50, first=3))
    assert partition.releasing is partition.counter is not None
    assert ingest.transport.stored, "the first windows are over"


def test_a_known_start_needs_no_record(tmp_path):
    ingest = Ingest(tmp_path, start=True)
    partition = ingest.turn(Assigned(0))
    assert partition.releasing is partition.counter is not None


def test_nothing_is_committed_before_the_input_has_shown_its_mark(tmp_path):
    first = Ingest(tmp_path, Marks())
    first.turn(Assigned(0), views(1, 50))
    first.worker.checkpoint()
    commit = first.transport.stored[-1].commit[0]
    marks = Marks()
    ingest = Ingest(tmp_path, marks)
    partition = ingest.turn(Assigned(0, commit))
    assert marks.expected == "ends:0"
    assert (partition.counter is not None, partition.releasing) == (True, None)
    ingest.turn(views(50, 51, 90, first=1))
    ingest.turn(InputEnd(0, False))
    ingest.worker.checkpoint()
    assert ingest.transport.stored == [], "windows are due, and the input may be another one"
    marks.now = "ends:9"
    ingest.turn(InputEnd(0, False))
    assert partition.releasing is partition.counter
    assert ingest.transport.stored
    stored = len(ingest.transport.stored)
    marks.now = None  # reading goes back behind the mark
    ingest.turn(views(150, first=4))
    ingest.worker.checkpoint()
    assert len(ingest.transport.stored) == stored


def test_a_batch_behind_the_end_goes_on(tmp_path):
    ingest = Ingest(tmp_path)
    ingest.turn(Assigned(0), views(1), InputEnd(0, False))
    assert ingest.worker.ended
    ingest.turn(views(2, first=1))
    assert not ingest.worker.ended


def test_a_partition_that_comes_back_has_not_ended(tmp_path):
    """That it was at its end was known of the work that is gone, not of the new one."""
    ingest = Ingest(tmp_path)
    ingest.turn(Assigned(0), views(1), InputEnd(0, False))
    assert ingest.worker.ended
    ingest.turn(Revoked(0), Assigned(0))
    assert not ingest.worker.ended
    ingest.turn(views(1), InputEnd(0, False))
    assert ingest.worker.ended
