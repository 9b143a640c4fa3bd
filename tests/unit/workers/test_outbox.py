"""The publish worker over a log that holds outbox and sketch topic: assignment, time, restarts, refused commits."""

import pytest
from support.log_records import record_count
from support.rollup_runs import HOUR_MS, PIPELINE, QUARTER_MS, at, bits_of, marker, release

from sfm_stream.errors import BrokerError, ConflictError, StateError
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.transport.files.topic_input import StoredBatch, TopicInput
from sfm_stream.transport.files.transport import FileTransport
from sfm_stream.types import Assigned, Commit, Record, Revoked, Step
from sfm_stream.units import SKETCHES
from sfm_stream.wire.codec import CloseMarker, decode
from sfm_stream.wire.keys import MARKER_KEY
from sfm_stream.workers import outbox as outbox_worker
from sfm_stream.workers.outbox import OutboxWorker
from sfm_stream.workers.steps import TRIES

T0 = at("2026-01-01")
OUTBOX, PARTITIONS = "outbox", 2
COMMITTED_MS = 5_000
"""Time stamp of every outbox record: when it was committed, which the sketch topic must not show."""


@pytest.fixture
def log(tmp_path):
    log = SqliteLog(str(tmp_path / "topics.sqlite"))
    yield log
    log.close()


@pytest.fixture
def clock(monkeypatch):
    """The time, to be set as clock.ms."""

    class Clock:
        ms = T0

    monkeypatch.setattr(outbox_worker, "now_ms", lambda: Clock.ms)
    return Clock


def quarter(number):
    return T0 + number * QUARTER_MS


def window(number, *keys, partition=0, **other):
    where = {"partition": partition, "partitions": PARTITIONS} | other
    closing = marker(quarter(number), quarter(number + 1), **where)
    return [*(release(quarter(number), key, **where) for key in keys), closing]


def fill(log, payloads, partition=0):
    """Commit records to the outbox as ingest does."""
    records = [Record(OUTBOX, partition, _key(payload), payload, COMMITTED_MS) for payload in payloads]
    assert log.append("ingest", Step(tuple(records)))


def _key(payload):
    record = decode(payload)
    return MARKER_KEY if isinstance(record, CloseMarker) else record.key


class Failing(FileTransport):
    """Says as often as `failures` that nothing was committed; can be told that partitions come and go."""

    failures = 0

    def __init__(self, source, log):
        super().__init__(source, log, "publish")
        self.sent, self.events = [], []

    def poll(self):
        return [*super().poll(), *[self.events.pop(0) for _ in list(self.events)]]

    def commit(self, step):
        self.sent.append(step)
        if self.failures:
            self.failures -= 1
            return False
        return super().commit(step)


def worker_on(log, limit=8 << 20, hold_ms=None, batch=256):
    transport = Failing(TopicInput(log, OUTBOX, PARTITIONS, batch), log)
    worker = OutboxWorker(PIPELINE, transport, limit, hold_ms)
    worker.tick()  # the partitions are assigned
    assert sorted(worker.partitions) == list(range(PARTITIONS))
    return worker, transport


def values(log, partition=0, topic=SKETCHES):
    return [record.value for record in log.read(topic, partition)]


def test_each_partition_is_copied_byte_for_byte_with_the_end_of_its_windows(log):
    logs = [[*window(0, "a", "b"), *window(1)], window(0, "c", partition=1)]
    for partition, payloads in enumerate(logs):
        fill(log, payloads, partition)
    worker, _ = worker_on(log)
    worker.tick()
    for partition, payloads in enumerate(logs):
        assert values(log, partition) == payloads
        stored, original = list(log.read(SKETCHES, partition)), list(log.read(OUTBOX, partition))
        assert [record.key for record in stored] == [record.key for record in original]
        assert {record.timestamp_ms for record in original} == {COMMITTED_MS}
    assert [record.timestamp_ms for record in log.read(SKETCHES, 0)] == [quarter(1)] * 3 + [quarter(2)]
    assert worker.published == 6
    assert log.positions("publish") == {0: Commit(0, 4, b"[1,4,4]"), 1: Commit(1, 2, b"[1,2,2]")}
    worker.tick()
    worker.checkpoint()
    assert worker.published == record_count(log, SKETCHES) == 6


def test_what_is_committed_later_follows(log):
    worker, _ = worker_on(log)
    written = []
    for number in range(4):
        fill(log, window(number, "a"))
        written += window(number, "a")
        worker.tick()
        assert values(log) == written


@pytest.mark.parametrize("limit", [1, 300, 8 << 20])
def test_a_successor_goes_on_where_the_last_commit_ended(log, limit):
    written = [payload for number in range(6) for payload in window(number, "a", "b")]
    fill(log, written)
    commits = 0
    while len(values(log)) < len(written):
        worker, transport = worker_on(log, limit, batch=5)
        while not transport.sent:  # one transaction each, then it is gone
            worker.tick(lambda sent=transport.sent: bool(sent))
        commits += 1
        assert values(log) == written[: len(values(log))]
    assert values(log) == written
    assert commits >= 2


def test_it_looks_whether_to_stop_between_two_transactions(log):
    fill(log, window(0, "a", "b", "c"))
    worker, transport = worker_on(log, limit=1)
    worker.tick(lambda: len(transport.sent) == 2)
    assert values(log) == window(0, "a", "b")[:2]
    worker.tick()
    assert values(log) == window(0, "a", "b", "c")


def test_a_refused_commit_is_sent_again_with_the_same_bytes_after_a_poll(log):
    fill(log, window(0, "a"))
    worker, transport = worker_on(log)
    transport.failures = 2
    worker.tick()
    fill(log, window(1, "a"))
    worker.tick()
    assert (values(log), worker.published) == ([], 0)
    worker.tick()
    assert transport.sent[0] is transport.sent[1] is transport.sent[2]
    assert values(log) == [*window(0, "a"), *window(1, "a")]
    assert worker.published == 4


def test_it_gives_up_at_last(log):
    fill(log, window(0, "a"))
    worker, transport = worker_on(log)
    transport.failures = TRIES
    with pytest.raises(BrokerError, match="was not committed"):  # noqa: PT012 -- the last of the tries fails
        for _ in range(TRIES):
            worker.tick()
    assert values(log) == []


def test_a_lost_partition_publishes_nothing_more_and_a_new_owner_all_of_it(log):
    fill(log, window(0, "a"))
    fill(log, window(0, "b", partition=1), 1)
    worker, transport = worker_on(log)
    transport.events = [Revoked(0)]
    worker.tick()
    assert list(worker.partitions) == [1]
    assert (values(log, 0), values(log, 1)) == ([], window(0, "b", partition=1))
    transport.events = [Assigned(0)]
    worker.tick()
    worker.tick()
    assert values(log, 0) == window(0, "a")
    transport.events = [Revoked(0), Assigned(0, Commit(0, 2, b"[1,2,2]"))]
    worker.tick()
    worker.tick()
    assert values(log, 0) == window(0, "a"), "nothing twice"


def test_what_is_held_comes_at_its_time_without_anything_new_in_the_outbox(log, clock):
    fill(log, [*window(0, "a"), *window(1, "a")])
    worker, _ = worker_on(log, hold_ms=HOUR_MS)
    for number in (1, 2):
        clock.ms = quarter(number) + HOUR_MS - 1
        worker.tick()
        worker.checkpoint()
        assert len(values(log)) == 2 * (number - 1)
        clock.ms += 1
        worker.tick()
        assert len(values(log)) == 2 * number
    assert values(log) == [*window(0, "a"), *window(1, "a")]


def test_what_is_held_is_not_lost_by_a_restart(log, clock):
    fill(log, [*window(0, "a"), *window(1, "a")])
    clock.ms = quarter(1)
    worker, _ = worker_on(log, hold_ms=0)
    worker.tick()
    worker.checkpoint()
    assert log.positions("publish") == {0: Commit(0, 2, b"[1,2,2]")}
    clock.ms = quarter(2)
    successor, _ = worker_on(log, hold_ms=0)
    successor.tick()
    assert values(log) == [*window(0, "a"), *window(1, "a")]


def test_without_a_slot_the_clock_does_not_matter(log, clock):
    clock.ms = 0
    fill(log, window(0, "a"))
    worker, _ = worker_on(log)
    worker.tick()
    assert values(log) == window(0, "a")


def test_a_checkpoint_commits_a_position_that_moved_past_empty_offsets(log):
    fill(log, window(0, "a"))
    worker, transport = worker_on(log)
    worker.tick()
    worker.partitions[0].passed(7)
    transport.failures = 1
    worker.checkpoint()
    assert log.positions("publish")[0].offset == 2
    worker.checkpoint()  # the step is still due: the next turn sends it
    worker.tick()
    assert log.positions("publish")[0] == Commit(0, 7, b"[1,7,7]")
    assert (worker.published, values(log)) == (2, window(0, "a"))


def test_a_batch_may_end_behind_its_last_record(log):
    worker, transport = worker_on(log)
    fill(log, window(0, "a"))
    batch = StoredBatch(log.page(OUTBOX, 0, 0, 9))
    batch.next_offset = 6
    transport.seek(0, 2)
    transport.events = [batch]
    worker.tick()
    assert log.positions("publish") == {0: Commit(0, 6, b"[1,6,6]")}
    assert values(log) == window(0, "a")


def test_an_incident_stops_it_before_anything_of_what_came_is_published(log):
    where = {"partition": 0, "partitions": PARTITIONS}
    fill(log, window(0, "a"))
    worker, _ = worker_on(log)
    worker.tick()
    fill(log, [release(quarter(1), "a", bits_of(seed), **where) for seed in (1, 2)])
    for _ in range(2):
        with pytest.raises(ConflictError, match="outbox, partition 0, offset 3"):
            worker.tick()
    assert values(log) == window(0, "a")
    assert log.positions("publish")[0].offset == 2
    with pytest.raises(ConflictError):
        worker_on(log)[0].tick()  # nor does a restart get past it
    assert values(log) == window(0, "a")


@pytest.mark.parametrize(
    "payload",
    [
        release(quarter(0), "a", partition=0, partitions=PARTITIONS, pipeline="clicks"),
        release(quarter(0), "a", partition=1, partitions=PARTITIONS),
    ],
    ids=["pipeline", "partition"],
)
def test_a_record_of_another_stops_it(log, payload):
    fill(log, [*window(0, "b"), payload])
    worker, _ = worker_on(log)
    with pytest.raises(StateError, match="outbox, partition 0, offset 2: a record of"):
        worker.tick()
    assert values(log) == []


def test_garbage_and_a_wrong_key_stop_it(log):
    assert log.append("x", Step((Record(OUTBOX, 1, b"k", b"garbage", 0),)))
    with pytest.raises(StateError, match="outbox, partition 1, offset 0: not a record"):
        worker_on(log)[0].tick()
    payload = window(0, "a")[0]
    assert log.append("x", Step((Record(OUTBOX, 0, b"k", payload, 0),)))
    with pytest.raises(StateError, match="outbox, partition 0, offset 0: the record key"):
        worker_on(log)[0].tick()
    assert record_count(log, SKETCHES) == 0


def test_a_state_of_another_worker_stops_it(log):
    assert log.append("publish", Step(commit=(Commit(0, 0, b"{}"),)))
    with pytest.raises(StateError, match="committed state cannot be read"):
        worker_on(log)


def test_a_window_that_comes_in_parts_is_one_transaction(log):
    """Parts of it wait for its marker as long as polls bring some."""
    written = window(0, *"abcdefg")
    fill(log, written)
    worker, transport = worker_on(log, batch=3)
    for _ in range(2):
        worker.tick()
        assert (transport.sent, values(log)) == ([], [])
    worker.tick()
    assert [len(step.publish) for step in transport.sent] == [len(written)]
    assert values(log) == written


def test_a_poll_that_brings_nothing_ends_the_wait_for_the_rest_of_a_window(log):
    written = window(0, *"abcd")
    fill(log, written[:3])
    worker, _ = worker_on(log, batch=3)
    worker.tick()
    assert values(log) == []
    worker.tick()
    assert values(log) == written[:3]
    fill(log, written[3:])
    worker.tick()
    assert values(log) == written


def test_what_fills_a_transaction_waits_for_nothing(log):
    written = window(0, *"abcdef")
    fill(log, written)
    size = len(written[0]) + len(_key(written[0]))
    worker, transport = worker_on(log, limit=2 * size, batch=5)
    worker.tick()
    assert [len(step.publish) for step in transport.sent] == [2, 2], "the fifth waits"
    worker.tick()
    assert values(log) == written


def test_one_partition_does_not_wait_for_another(log):
    fill(log, window(0, *"abcdef")[:-1])
    fill(log, window(0, "x", partition=1), 1)
    worker, _ = worker_on(log, batch=2)
    worker.tick()
    assert (values(log, 0), values(log, 1)) == ([], window(0, "x", partition=1))
