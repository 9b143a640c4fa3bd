"""Declared keys on several partitions: each partition's worker counts and publishes the keys that it owns."""

import json
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import pytest
from kafka.partitioner import murmur2 as kafka_python_murmur2
from reference.memory_batch import MemoryBatch
from support.embedded_runs import NoFlips
from support.kafka_runs import CONFIG, DEFAULTS, MINUTE_MS, START_MS

from sfm_stream.config.config import parse_config
from sfm_stream.errors import StateError
from sfm_stream.events.event_schema import MAX_TIME_MS
from sfm_stream.events.partitioner import PARTITIONERS
from sfm_stream.events.placement import Placement
from sfm_stream.pipeline.counting.position import decode_state, encode_state, first_state
from sfm_stream.types import Assigned, Commit, InputEnd, Reason
from sfm_stream.units import FOREVER_MS
from sfm_stream.wire.codec import Release, decode
from sfm_stream.wire.keys import encode_key
from sfm_stream.workers.ingest import IngestWorker

KEYS = [f"k{number}" for number in range(12)]
PARTITIONS = 3
OWNER = {key: (kafka_python_murmur2(key.encode()) & 0x7FFFFFFF) % PARTITIONS for key in KEYS}
HERE = next(key for key in KEYS if OWNER[key] == 0)
ELSEWHERE = next(key for key in KEYS if OWNER[key] == 1)


class Cluster:
    """A transport that gives what it is told to, and keeps what is committed."""

    partitions = PARTITIONS

    def __init__(self):
        self.events, self.steps = [], []

    def poll(self):
        events, self.events = self.events, []
        return events

    def seek(self, partition, offset):
        pass

    def commit(self, step):
        self.steps.append(step)
        return True

    def close(self):
        pass


def config_of(keys=KEYS, key='"page"', limits="", later=""):
    privacy = f'epsilon = 2\nkeys = "declared"\ndeclared = {json.dumps(keys)}\n{later}'
    fields = {"bootstrap": '["nowhere:1"]', "topic": "in", "id": "owned", "room": 4096, "privacy": "", "limits": limits}
    text = CONFIG.format(**DEFAULTS | fields | {"key": key}).replace("[privacy]\n", f"[privacy]\n{privacy}\n")
    return parse_config(text, Path("."))


class Worker:
    """One that has all partitions, from their first start or from what another one committed."""

    def __init__(self, config, commits=None):
        self.cluster = Cluster()
        self.worker = IngestWorker(
            config,
            self.cluster,
            "in/1",
            first_latest_ms=None,
            epoch_end=lambda partition: FOREVER_MS,
            coins=NoFlips(),
            placement=lambda partition: Placement(PARTITIONERS["murmur2"], partition, PARTITIONS),
        )
        state = first_state(config.plan(PARTITIONS, START_MS), "in/1", MAX_TIME_MS, 0)
        first = {number: Commit(number, 0, encode_state(state)) for number in range(PARTITIONS)}
        self.begun = commits or first
        self.turn(*(Assigned(number, commit) for number, commit in self.begun.items()))

    def turn(self, *events):
        self.cluster.events += events
        self.worker.tick()

    def read(self, partition, *keys, first=0, user="u"):
        values = [json.dumps({"page": key, "user": user, "at": START_MS}).encode() for key in keys]
        self.turn(MemoryBatch(values, [START_MS] * len(values), first, partition))

    def idle(self, windows):
        """Nothing came until so many windows were over."""
        asked_ms = START_MS + windows * MINUTE_MS + 31_001
        self.turn(*(InputEnd(number, complete=False, asked_ms=asked_ms) for number in self.begun))

    @property
    def commits(self):
        """What was committed last, of each partition."""
        self.worker.checkpoint()
        return self.begun | {commit.partition: commit for step in self.cluster.steps for commit in step.commit}

    @property
    def releases(self):
        """(window, partition) to the keys released, in order."""
        found = []
        for step in self.cluster.steps:
            for record in step.publish:
                release = decode(record.value)
                if isinstance(release, Release):
                    assert release.partition == record.partition
                    window = (release.window.start_ms - START_MS) // MINUTE_MS
                    found.append(((window, record.partition), release.key))
        return {place: [key for _, key in rows] for place, rows in groupby(sorted(found), key=lambda row: row[0])}


def owned(keys=KEYS):
    by_owner = {number: sorted(encode_key(key) for key in keys if OWNER[key] == number) for number in range(PARTITIONS)}
    return {number: found for number, found in by_owner.items() if found}


def test_each_partition_publishes_the_keys_that_it_owns_without_any_record():
    worker = Worker(config_of())
    worker.idle(2)
    assert worker.releases == {(window, number): keys for window in range(2) for number, keys in owned().items()}
    assert len(owned()) == PARTITIONS


@pytest.mark.parametrize(
    ("fields", "keys", "values"),
    [('"page"', [7, -1, 0, 12], [7, -1, 0, 12]), ('["page", "n"]', [["a", 1], ["a", 2]], [("a", 1), ("a", 2)]),
     ("[]", [[]], [()])],
)  # fmt: skip
def test_the_owner_is_that_of_the_record_key(fields, keys, values):
    def owner(key):
        sent = b"%d" % key if isinstance(key, int) else encode_key(key)
        return (kafka_python_murmur2(sent) & 0x7FFFFFFF) % PARTITIONS

    worker = Worker(config_of(keys, fields))
    worker.idle(1)
    found = {(place, key) for place, listed in worker.releases.items() for key in listed}
    assert found == {((0, owner(key)), encode_key(key)) for key in values}


def test_a_declared_key_of_another_partition_is_misplaced_and_a_strange_one_is_not_declared():
    worker = Worker(config_of())
    worker.read(0, HERE, ELSEWHERE, "strange", HERE)
    assert worker.worker.report.dropped == {Reason.KEY_MISPLACED: 1, Reason.KEY_NOT_DECLARED: 1}
    assert worker.worker.report.counted == 2


def test_misplaced_keys_stop_the_worker_even_between_strange_ones():
    """A topic under another partitioner, of which a few keys are declared: the counts would all be empty."""
    worker = Worker(config_of(limits="max_consecutive_invalid = 5"))
    worker.read(0, *["strange"] * 20)
    worker.read(0, *[ELSEWHERE, "strange"] * 5, first=20)
    with pytest.raises(StateError, match=r"partition 0, offset 30.*max_consecutive_invalid = 5.*key_misplaced.*keyed"):
        worker.read(0, ELSEWHERE, first=30)


def test_a_key_where_it_belongs_ends_a_run_of_misplaced_ones():
    worker = Worker(config_of(limits="max_consecutive_invalid = 5"))
    for turn in range(4):
        worker.read(0, *[ELSEWHERE, "strange"] * 4, HERE, first=9 * turn)
    assert worker.worker.report.dropped[Reason.KEY_MISPLACED] == 16


def test_the_state_of_a_partition_binds_its_own_keys_only():
    """From the first release on a key is neither added to the past nor withdrawn; other partitions do not mind."""
    first = Worker(config_of())
    assert {decode_state(commit).declared for commit in first.commits.values()} <= {""}
    first.idle(2)
    commits = first.commits
    Worker(config_of(), commits).idle(3)
    fewer = [key for key in KEYS if key != ELSEWHERE]
    others = {number: commit for number, commit in commits.items() if number != OWNER[ELSEWHERE]}
    Worker(config_of(fewer), others).idle(3)
    with pytest.raises(StateError, match=r"partition 1: privacy.declared changed"):
        Worker(config_of(fewer), commits)


def test_a_list_may_change_before_the_first_release():
    worker = Worker(config_of(["k0", "k1"]))
    worker.read(0, *["strange"] * 3)
    Worker(config_of(), worker.commits).idle(1)


def test_a_key_that_comes_later_is_released_from_then_on_where_it_belongs():
    first = Worker(config_of([key for key in KEYS if key != ELSEWHERE]))
    first.idle(2)

    def config_since(window):
        since = datetime.fromtimestamp((START_MS + window * MINUTE_MS) / 1000, UTC).isoformat()
        later = f'declared_from = [{{since = {since}, keys = ["{ELSEWHERE}"]}}]'
        return config_of([key for key in KEYS if key != ELSEWHERE], later=later)

    second = Worker(config_since(3), first.commits)
    second.idle(5)
    places = [place for place, keys in second.releases.items() if encode_key(ELSEWHERE) in keys]
    assert places == [(3, 1), (4, 1)]
    with pytest.raises(StateError, match=r"partition 1: privacy.declared changed"):
        Worker(config_since(1), first.commits)
