"""Copying topics, on the model of Kafka: what is committed, in which order, and what shows that topics are others."""

from __future__ import annotations

from contextlib import closing

import pytest
from support.fake_kafka import FakeCluster, run_on
from support.fake_kafka_broker import FakeBroker

from sfm_stream.errors import BrokerAway
from sfm_stream.serve import topic_copy
from sfm_stream.serve.topic_copy import TopicCopy, Topics
from sfm_stream.transport.files.topic_cache import TopicCache
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.units import ROLLUPS, SKETCHES

NAMES = {SKETCHES: "v.sketches", ROLLUPS: "v.rollups"}
TOPICS = Topics(NAMES, {topic: f"{topic} {name} 1" for topic, name in NAMES.items()})


@pytest.fixture
def broker(monkeypatch):
    broker = FakeBroker()
    run_on(broker, monkeypatch)
    for name in NAMES.values():
        broker.create(name, 2)
    return broker


@pytest.fixture
def cache(tmp_path):
    with closing(TopicCache(str(tmp_path / "v.topics.sqlite"))) as cache:
        yield cache


def write(broker, topic, partition, count, commit=True):
    """A transaction with so many records, and its control record."""
    log = broker.log((NAMES[topic], partition))
    log.append([(b"k%d" % n, b"%d" % (log.end + n), 1000 * n) for n in range(count)], producer=1, transactional=True)
    log.mark(1, 0, commit)


def copied(cache, topic):
    return [(each.partition, each.offset, each.value) for each in cache.read(topic)]


def committed(broker, topic):
    logs = [(number, broker.log((NAMES[topic], number))) for number in range(2)]
    return [(number, entry.offset, entry.value) for number, log in logs for entry in log.values(committed=True)]


def never():
    return False


def test_what_is_committed_is_copied_at_its_offsets_and_followed(broker, cache):
    copy = TopicCopy(cache, TOPICS, TopicLog(FakeCluster(broker=broker)))
    for round_ in range(3):
        for topic in NAMES:
            write(broker, topic, round_ % 2, 3 + round_)
            write(broker, topic, 1, 2, commit=False)
        assert copy.follow(never)
        for topic in NAMES:
            assert copied(cache, topic) == committed(broker, topic) != []
        assert copy.done == copy.wanted > 0


def test_it_goes_on_where_another_one_stopped(broker, cache, monkeypatch):
    monkeypatch.setattr(topic_copy, "_STEP_RECORDS", 2)
    for topic in NAMES:
        write(broker, topic, 0, 9)
    log, steps, marks = TopicLog(FakeCluster(broker=broker)), [], []
    first = TopicCopy(cache, TOPICS, log, lambda: marks.append(first.mark()))
    assert first.follow(lambda: len(marks) >= 2)
    assert len(copied(cache, SKETCHES)) < 9
    first_offset = len(copied(cache, SKETCHES))
    reads = log.batches

    def noted(topic, partition, start, stop):
        steps.append((topic, start))
        return reads(topic, partition, start, stop)

    log.batches = noted
    assert TopicCopy(cache, TOPICS, log).follow(never)
    assert min(start for topic, start in steps if topic == NAMES[SKETCHES]) == first_offset
    assert copied(cache, SKETCHES) == committed(broker, SKETCHES)
    assert marks[0] != marks[1]


def test_a_roll_up_is_never_copied_before_what_it_is_made_of(broker, cache):
    """While the sketches are copied, more of both are published: the roll-ups among those wait for the next round."""
    write(broker, SKETCHES, 0, 3)
    write(broker, ROLLUPS, 0, 1)
    more = iter([1])

    def meanwhile():
        if next(more, None):
            write(broker, SKETCHES, 0, 2)
            write(broker, ROLLUPS, 0, 2)

    copy = TopicCopy(cache, TOPICS, TopicLog(FakeCluster(broker=broker)), meanwhile)
    copy.follow(never)
    assert (len(copied(cache, SKETCHES)), len(copied(cache, ROLLUPS))) == (3, 1)
    copy.follow(never)
    assert (len(copied(cache, SKETCHES)), len(copied(cache, ROLLUPS))) == (5, 3)


def test_topics_that_end_before_what_is_copied_are_others(broker, cache):
    write(broker, SKETCHES, 0, 3)
    copy = TopicCopy(cache, TOPICS, TopicLog(FakeCluster(broker=broker)))
    assert copy.follow(never)
    cache.add(TOPICS.sources[SKETCHES], SKETCHES, 0, [], 99)
    assert not copy.follow(never)


def test_a_topic_that_is_not_there_is_waited_for(cache, monkeypatch):
    broker = FakeBroker()
    run_on(broker, monkeypatch)
    with pytest.raises(BrokerAway, match=r"v\.rollups"):
        TopicCopy(cache, TOPICS, TopicLog(FakeCluster(broker=broker))).follow(never)
