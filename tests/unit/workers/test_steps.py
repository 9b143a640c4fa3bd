"""Workers on a transport that does not commit at once: the same bytes again, a poll in between, and a last try."""

import json
from itertools import cycle

import pytest
from reference.memory_batch import MemoryBatch
from support.embedded_runs import HOUR_MS, IN_TIME, MINUTE_MS, START_MS, NoFlips, write_config
from support.rollup_runs import DAY_MS, QUARTER_MS, at, marker, release

from sfm_stream.config.config import load_config
from sfm_stream.errors import BrokerError
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.types import NO_TIME, Assigned, Commit, InputEnd, Reason, Record, Revoked, Step
from sfm_stream.units import FOREVER_MS
from sfm_stream.wire.codec import decode
from sfm_stream.wire.keys import MARKER_KEY
from sfm_stream.workers.ingest import IngestWorker
from sfm_stream.workers.rollup import RollupWorker
from sfm_stream.workers.steps import TRIES, perform, perform_due


class Scripted:
    """A transport of one partition. polls: the events of each poll, then ends. fails: whether each commit fails."""

    partitions = 1

    def __init__(self, polls=(), fails=()):
        self.polls, self.fails = list(polls), iter(fails)
        self.calls, self.offered, self.stored = [], [], []

    def poll(self):
        self.calls.append("poll")
        return self.polls.pop(0) if self.polls else [InputEnd(0, False)]

    def seek(self, partition, offset):
        pass

    def commit(self, step):
        self.calls.append("commit")
        self.offered.append(step)
        done = not next(self.fails, False)
        if done:
            self.stored.append(step)
        return done

    @property
    def records(self):
        return [record for step in self.stored for record in step.publish]


class Queue:
    """A pipeline whose steps are given."""

    failed = 0

    def __init__(self, steps):
        self.steps = list(steps)

    def step(self):
        return self.steps[0] if self.steps else None

    def committed(self, step):
        assert step is self.steps.pop(0)


STEPS = [
    Step((Record("sketches", 0, key, b"", 0), Record("sketches", 0, MARKER_KEY, b"", 0)), (Commit(0, 1, b""),))
    for key in (b"a", b"b", b"c")
]


def never():
    return False


def test_a_step_that_is_not_committed_stays_due():
    queue, transport = Queue(STEPS), Scripted(fails=[False, True, True])
    assert perform_due(transport, queue, never, releases_only=True) == 1
    assert transport.offered == STEPS[:2], "nothing is tried behind a step that failed, nor the same one at once"
    assert perform_due(transport, queue, never) == 0
    assert perform_due(transport, queue, never) == 4
    assert transport.stored == STEPS
    assert [id(step) for step in transport.offered] == [id(STEPS[i]) for i in (0, 1, 1, 1, 2)]
    assert queue.failed == 0


def test_the_worker_gives_up_after_many_tries_in_a_row():
    queue, transport = Queue(STEPS), Scripted(fails=cycle([True]))
    for _ in range(TRIES - 1):
        assert not perform(transport, queue, STEPS[0])
    with pytest.raises(BrokerError, match=f"not committed in {TRIES} tries; nothing of it is stored"):
        perform(transport, queue, STEPS[0])
    transport.fails = iter([False, True])
    queue.failed = TRIES - 1
    assert perform(transport, queue, STEPS[0])
    assert not perform(transport, queue, STEPS[1]), "one that succeeds ends the row"


def views(*minutes, first=0, arrivals=None):
    """One batch: an event of one page at each of these minutes; it arrives then, or at `arrivals`."""
    lines = [json.dumps({"page": "p", "user": f"u{m}", "at": START_MS + m * MINUTE_MS}).encode() for m in minutes]
    return MemoryBatch(lines, [START_MS + m * MINUTE_MS for m in arrivals or minutes], first)


def ingest(folder, transport, **settings):
    config = load_config(write_config(folder, **IN_TIME, **settings))
    return IngestWorker(config, transport, "in", START_MS + DAY_MS, lambda partition: FOREVER_MS, NoFlips())


def closed(records):
    """(first minute of the window, its lit cells) of each marker."""
    found, lit = [], 0
    for record in records:
        if record.key == MARKER_KEY:
            found.append(((decode(record.value).start_ms - START_MS) // MINUTE_MS, lit))
            lit = 0
        else:
            lit += sum(byte.bit_count() for byte in decode(record.value).sketch.bits)
    return found


def test_ingest_polls_between_two_tries_and_has_not_ended_before_all_is_committed(tmp_path):
    polls = [[Assigned(0)], [views(1, 2), views(16, 50, first=2)]]
    transport = Scripted(polls, fails=[True, True, True])
    worker = ingest(tmp_path, transport)
    turns = 0
    while not worker.ended:
        worker.tick()
        turns += 1
        assert turns < 10
    assert transport.calls == ["poll", *["poll", "commit"] * 4]
    assert transport.offered == transport.stored * 4
    assert closed(transport.records) == [(0, 2), (15, 1)]
    assert worker.report.releases == 2


def test_a_lost_partition_takes_its_step_with_it(tmp_path):
    polls = [[Assigned(0)], [views(1, 50)], [Revoked(0)], [Assigned(0)], [views(1, 2, 50)]]
    transport = Scripted(polls, fails=[True])
    worker = ingest(tmp_path, transport)
    for _ in range(6):
        worker.tick()
    assert transport.calls == ["poll", "poll", "commit", "poll", "poll", "poll", "commit", "poll"]
    assert closed(transport.records) == [(0, 2), (15, 0)]


def test_a_checkpoint_that_is_not_committed_is_tried_in_the_next_turn(tmp_path):
    transport = Scripted([[Assigned(0)], [views(1, 7)], [], [views(40, first=2)]], fails=[True])
    worker = ingest(tmp_path, transport, start="2026-01-01T01:00:00Z")
    worker.tick()
    worker.tick()
    worker.checkpoint()
    worker.checkpoint()
    assert (len(transport.offered), transport.stored) == (1, [])
    worker.tick()
    assert transport.offered == transport.stored * 2
    worker.tick()
    worker.checkpoint()
    assert [step.commit[0].offset for step in transport.stored] == [2, 3]


@pytest.mark.parametrize(
    ("margin", "minutes", "windows"),
    [("5s", 20, []), ("1ms", 20, []), ("0s", 21, [0]), ("1m", 21, []), ("1m", 22, [0]), ("5s", 52, [0, 15, 30])],
)
def test_an_idle_partition_closes_by_the_clock_on_the_wall(tmp_path, margin, minutes, windows):
    """Grace 5 minutes. What comes for a closed window after all is late."""
    end = InputEnd(0, False, START_MS + minutes * MINUTE_MS)
    transport = Scripted([[Assigned(0)], [views(1, 2)], [end], [views(3, first=2)]])
    worker = ingest(tmp_path, transport, start=f'2026-01-01T00:00:00Z\nclock_margin = "{margin}"')
    for _ in range(4):
        worker.tick()
    assert closed(transport.records) == [(window, 2 * (window == 0)) for window in windows]
    assert worker.report.dropped[Reason.LATE] == bool(windows)


def test_an_end_without_a_time_closes_nothing(tmp_path):
    transport = Scripted([[Assigned(0)], [views(1, 2)], [InputEnd(0, False, NO_TIME)]])
    worker = ingest(tmp_path, transport)
    for _ in range(3):
        worker.tick()
    assert transport.stored == []


class NoHistory:
    def read(self, topic, partition=None, offset=0):
        return iter(())


def rolled_up(fails, **settings):
    """What a roll-up publishes of a day and a bit, in small batches; several of them in each poll."""
    start = at("2026-01-01")
    log = []
    for window in range(110):
        low = start + window * QUARTER_MS
        log += [release(low, key) for key in ("a", "b")[: 1 + window % 2]] + [marker(low, low + QUARTER_MS)]
    batches = [MemoryBatch(log[i : i + 3], first=i) for i in range(0, len(log), 3)]
    polls = [[Assigned(0)], *(batches[i : i + 4] for i in range(0, len(batches), 4))]
    transport = Scripted(polls, fails)
    worker = RollupWorker("views", calendar("UTC", QUARTER_MS, start), transport, NoHistory(), **settings)
    worker.catch_up(never, expire_before_ms=start + 110 * QUARTER_MS + 30 * HOUR_MS)
    return transport, worker


@pytest.mark.parametrize("fails", [[True] * 40, cycle([True, False]), cycle([False, True, True, True])])
@pytest.mark.parametrize("max_bytes", [1, 8 << 20])
def test_a_rollup_whose_commits_fail_publishes_what_it_would_have_published(fails, max_bytes):
    """Input goes on coming in between; the bytes of a revision are the same whenever it is committed."""
    plain, _ = rolled_up([], max_bytes=max_bytes)
    transport, worker = rolled_up(fails, max_bytes=max_bytes)
    assert transport.records == plain.records
    assert worker.published == len(plain.records) > 0


def test_a_rollup_that_cannot_commit_stops():
    with pytest.raises(BrokerError, match=f"{TRIES} tries"):
        rolled_up(cycle([True]), max_bytes=8 << 20)
