"""What every worker makes of the events of a transport, tested without a broker or a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import ref

import pytest
from reference.memory_batch import MemoryBatch

from sfm_stream.transport.contract import InputEvent
from sfm_stream.types import Assigned, Commit, InputEnd, Revoked, Step
from sfm_stream.workers.partition_worker import PartitionWorker


class Script:
    """A transport that gives one list of events a poll, and commits unless it is told not to."""

    partitions = 3

    def __init__(self) -> None:
        self.polls: list[list[InputEvent]] = []
        self.refuses = 0
        self.stored: list[Step] = []

    def poll(self) -> list[InputEvent]:
        return self.polls.pop(0) if self.polls else []

    def seek(self, partition: int, offset: int) -> None: ...

    def hold(self, partitions: object) -> None: ...

    def commit(self, step: Step) -> bool:
        if self.refuses:
            self.refuses -= 1
            return False
        self.stored.append(step)
        return True

    def close(self) -> None: ...


class Part:
    """The work of one partition: offsets that are read and not committed yet. life: how many came before it."""

    def __init__(self, number: int, life: int) -> None:
        self.name = f"{number}.{life}"
        self.number = number
        self.offsets: list[int] = []


class Recorder(PartitionWorker[Part]):
    """Writes down what it is asked for; a step commits all that was read of a partition."""

    def __init__(self, transport: Script) -> None:
        super().__init__(transport)
        self.calls: list[str] = []
        self.lives = 0

    def checkpoint(self) -> None:
        self.calls.append("checkpoint")

    def _begin(self, event: Assigned) -> Part:
        self.lives += 1
        self.calls.append(f"begin {event.partition}")
        return Part(event.partition, self.lives)

    def _read(self, part: Part, batches: Sequence[MemoryBatch], stopping) -> None:
        offsets = [offset for batch in batches for offset in batch.offsets().tolist()]
        part.offsets += offsets
        self.calls.append(f"read {part.name} {offsets} in {len(batches)}")

    def _end(self, part: Part, end: InputEnd) -> None:
        self.calls.append(f"end {part.name}")

    def _revoked(self, part: Part) -> None:
        self.calls.append(f"revoked {part.name} with {part.offsets}")

    def _commit_due(self, stopping) -> None:
        self.calls.append("commit")
        for part in self.partitions.values():
            if part.offsets and not stopping():
                step = Step(commit=(Commit(part.number, part.offsets[-1] + 1, part.name.encode()),))
                if self._transport.commit(step):
                    part.offsets = []


@pytest.fixture
def worker():
    return Recorder(Script())


def batch(partition: int, first: int, count: int = 1) -> MemoryBatch:
    return MemoryBatch([b"{}"] * count, first=first, partition=partition)


def turn(worker: Recorder, *events: InputEvent, stopping=lambda: False) -> list[str]:
    """What is asked of the worker in one turn with these events."""
    worker._transport.polls.append(list(events))
    before = len(worker.calls)
    worker.tick(stopping)
    return worker.calls[before:]


def stored(worker: Recorder) -> list[tuple[str, int]]:
    """(work that committed, position) of each step."""
    return [(step.commit[0].metadata.decode(), step.commit[0].offset) for step in worker._transport.stored]


def test_events_of_a_partition_are_handled_in_their_order_and_then_what_is_due_is_committed(worker):
    assert turn(worker, Assigned(0), batch(0, 0, 2), InputEnd(0, False)) == [
        "begin 0",
        "read 0.1 [0, 1] in 1",
        "end 0.1",
        "commit",
    ]
    assert stored(worker) == [("0.1", 2)]


def test_batches_of_a_poll_are_read_together_but_not_across_an_end(worker):
    turn(worker, Assigned(0))
    assert turn(worker, batch(0, 0), batch(0, 1), InputEnd(0, False), batch(0, 2), batch(0, 3)) == [
        "read 0.1 [0, 1] in 2",
        "end 0.1",
        "read 0.1 [2, 3] in 2",
        "commit",
    ]


@dataclass(frozen=True)
class Packed(MemoryBatch):
    """One that may be compressed."""

    unpacked_bytes: int = 0


def packed(*mebibytes: int) -> list[Packed]:
    return [Packed([b"{}"], first=first, unpacked_bytes=size << 20) for first, size in enumerate(mebibytes)]


def test_so_much_is_read_together_as_takes_bounded_memory_when_it_is_decompressed(worker):
    turn(worker, Assigned(0))
    assert turn(worker, *packed(20, 12, 1, 100, 32, 0, 31, 1)) == [
        "read 0.1 [0, 1] in 2",
        "read 0.1 [2] in 1",
        "read 0.1 [3] in 1",
        "read 0.1 [4, 5] in 2",
        "read 0.1 [6, 7] in 2",
        "commit",
    ]
    assert stored(worker) == [("0.1", 8)]


def test_nothing_holds_a_batch_that_is_read(worker, monkeypatch):
    """Its columns would be held with it."""
    turn(worker, Assigned(0))
    batches, alive = packed(30, 30, 30), []
    known = [ref(batch) for batch in batches]

    def read(part: Part, some: Sequence[MemoryBatch], stopping) -> None:
        alive.append([each() is not None for each in known])

    monkeypatch.setattr(worker, "_read", read)
    worker._transport.polls.append([*batches, InputEnd(0, False)])
    batches.clear()
    worker.tick()
    assert alive == [[True, True, True], [False, True, True], [False, False, True]]


def test_partitions_do_not_wait_for_each_other(worker):
    calls = turn(
        worker, Assigned(0), Assigned(1), batch(0, 0), batch(1, 5), InputEnd(1, False), batch(0, 1), Assigned(2)
    )
    of = {number: [call for call in calls if call.split()[1:2] and call.split()[1][0] == number] for number in "012"}
    assert of == {
        "0": ["begin 0", "read 0.1 [0, 1] in 2"],
        "1": ["begin 1", "read 1.2 [5] in 1", "end 1.2"],
        "2": ["begin 2"],
    }
    assert calls[-1] == "commit"
    assert sorted(stored(worker)) == [("0.1", 2), ("1.2", 6)]


def test_a_turn_says_whether_a_partition_or_a_record_came(worker):
    came = []
    for events in ([], [Assigned(0)], [InputEnd(0, False)], [batch(0, 0)], [Revoked(0)]):
        worker._transport.polls.append(events)
        came.append(worker.tick())
    assert came == [False, True, False, True, False]


def test_a_lost_partition_takes_its_step_with_it_and_the_next_life_begins_anew(worker):
    worker._transport.refuses = 1
    turn(worker, Assigned(0), batch(0, 0, 3))
    assert stored(worker) == [], "the step waits"
    assert turn(worker, Revoked(0)) == ["revoked 0.1 with [0, 1, 2]", "commit"]
    assert stored(worker) == [], "what waited is gone"
    assert turn(worker, Assigned(0), batch(0, 0)) == ["begin 0", "read 0.2 [0] in 1", "commit"]
    assert stored(worker) == [("0.2", 1)]


def test_batches_of_a_partition_that_is_lost_in_the_same_poll_are_not_read(worker):
    turn(worker, Assigned(0), Assigned(1))
    assert turn(worker, batch(0, 0), batch(1, 0), Revoked(0)) == [
        "revoked 0.1 with []",
        "read 1.2 [0] in 1",
        "commit",
    ]


def test_a_partition_that_comes_back_in_one_poll_is_another_life(worker):
    turn(worker, Assigned(0))
    assert turn(worker, batch(0, 7), Revoked(0), Assigned(0), batch(0, 2)) == [
        "revoked 0.1 with []",
        "begin 0",
        "read 0.2 [2] in 1",
        "commit",
    ]
    assert stored(worker) == [("0.2", 3)]


def test_one_that_is_assigned_again_without_being_revoked_is_another_life_too(worker):
    turn(worker, Assigned(0))
    assert turn(worker, batch(0, 7), Assigned(0)) == ["revoked 0.1 with []", "begin 0", "commit"]


def test_what_comes_late_of_a_lost_partition_changes_nothing(worker):
    turn(worker, Assigned(0), Revoked(0))
    assert turn(worker, Revoked(0), InputEnd(0, False)) == ["commit"]


def test_a_batch_without_an_assignment_is_not_taken(worker):
    """A transport that gives one is broken; passing over the batch would lose it."""
    with pytest.raises(KeyError):
        turn(worker, batch(0, 0))
    assert stored(worker) == []


def test_it_is_the_worker_that_looks_whether_to_stop(worker):
    turn(worker, Assigned(0), batch(0, 0), stopping=lambda: True)
    assert stored(worker) == [], "events are handled, and nothing is committed"
    turn(worker)
    assert stored(worker) == [("0.1", 1)]
