"""Records of a topic that are looked up by time and key: those that are asked for, and no batch behind them."""

from __future__ import annotations

import pytest
from support.fake_kafka import FakeCluster, run_on
from support.fake_kafka_broker import FakeBroker

from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.types import StoredRecord
from sfm_stream.units import ROLLUPS, SKETCHES

WINDOWS = 30


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> TopicLog:
    """Two partitions; in each window two keys and a marker, then a copy of an early record in the topic of roll-ups."""
    broker = FakeBroker()
    run_on(broker, monkeypatch)
    for topic in (SKETCHES, ROLLUPS):
        broker.create(topic, 2)
        for partition in (0, 1):
            for number in range(1, WINDOWS + 1):
                stamp = number * 1000
                batch = [(key, b"%d %d" % (partition, stamp), stamp) for key in (b"a", b"b", b"")]
                broker.log((topic, partition)).append(batch)
    broker.log((ROLLUPS, 0)).append([(b"a", b"late", 2000)])
    return TopicLog(FakeCluster(broker=broker))


def asked(records: list[StoredRecord], since: int, until: int, keys: set[bytes] | None) -> list[StoredRecord]:
    return [r for r in records if since <= r.timestamp_ms <= until and (keys is None or r.key in keys)]


@pytest.mark.parametrize("topic", [SKETCHES, ROLLUPS])
@pytest.mark.parametrize("keys", [None, {b"a"}, {b""}, set()])
@pytest.mark.parametrize(("since", "until"), [(0, 1 << 62), (2000, 4000), (3500, 3600), (99_000, 99_999)])
def test_what_is_looked_up_is_what_reading_everything_finds(log, topic, keys, since, until):
    everything = list(log.read(topic))
    assert len(everything) == 2 * 3 * WINDOWS + (topic == ROLLUPS)
    found = list(log.look_up(topic, since, until, keys))
    assert asked(found, since, until, keys) == asked(everything, since, until, keys)


def test_of_the_sketches_nothing_is_read_from_the_first_record_behind_the_span_on(log):
    found = list(log.look_up(SKETCHES, 5000, 6000, {b"a"}))
    assert [r.timestamp_ms for r in found] == [5000, 6000, 7000] * 2
    assert {r.key for r in found} == {b"a"}
    assert max(r.timestamp_ms for r in log.look_up(ROLLUPS, 5000, 6000)) == WINDOWS * 1000, "a revision may follow"


def test_records_are_found_by_their_offsets(log):
    everything = [r for r in log.read(SKETCHES) if r.partition == 1]
    wanted = [0, 1, 7, 30, 31, 3 * WINDOWS - 1]
    assert list(log.at(SKETCHES, 1, wanted)) == [everything[n] for n in wanted]
    assert list(log.at(SKETCHES, 1, [])) == []


def test_markers_are_those_under_no_key(log):
    assert list(log.markers(SKETCHES)) == [r for r in log.read(SKETCHES) if not r.key]
