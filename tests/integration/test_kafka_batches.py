"""On a real broker: the columns of batches are record for record what the client itself gives of the same topic."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from support.kafka_topics import make_topic, produce, topic_name
from support.patience import patiently

from sfm_stream.errors import BrokerError
from sfm_stream.transport.kafka.kafka_python.batches import KafkaBatch
from sfm_stream.transport.kafka.kafka_python.client import KafkaPythonCluster
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.types import Record

pytestmark = pytest.mark.kafka
NOW_MS = int(time.time() * 1000)
Row = tuple[int, int, bytes | None, bytes | None]
"""Offset, arrival, key, value."""


def records(count: int, seed: int = 1) -> list[tuple[bytes | None, bytes | None, int | None, int | None]]:
    """Of keys and values of every length, sometimes one of them null; some 300 bytes each, to fill batches."""
    rng = random.Random(seed)

    def field(longest: int) -> bytes:
        return bytes(rng.choices(b"abcdefgh", k=rng.choice([0, 1, 40, longest])))

    def pair() -> tuple[bytes | None, bytes | None]:
        """The client writes no record of which both are null."""
        null = rng.randrange(20)
        return None if null == 0 else field(150), None if null == 1 else field(1000)

    return [(*pair(), NOW_MS - rng.randrange(100_000), 0) for _ in range(count)]


def by_the_client(bootstrap: str, topic: str, start: int, stop: int) -> list[Row]:
    """What a plain consumer gives of the same offsets."""
    place, found = TopicPartition(topic, 0), []
    with KafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="none",
        enable_auto_commit=False,
    ) as consumer:
        consumer.assign([place])
        consumer.seek(place, start)
        while consumer.position(place) < stop:
            found += consumer.poll(timeout_ms=200).get(place, [])
    return [(r.offset, r.timestamp, r.key, r.value) for r in found]


def by_columns(batches: Iterable[KafkaBatch]) -> list[Row]:
    rows: list[Row] = []
    for batch in batches:
        columns = (batch.offsets().tolist(), batch.arrivals().tolist(), batch.keys(), batch.values())
        assert batch.partition == 0
        assert batch.count == len(columns[0])
        rows += zip(*columns, strict=True)
        assert batch.first <= rows[-batch.count][0]
        assert rows[-1][0] < batch.next_offset
    return rows


def require_equal(bootstrap: str, topic: str, at_least: int = 1) -> list[Row]:
    """From the beginning and from offsets in the middle of batches on; gives the rows of the whole."""
    log = TopicLog(KafkaPythonCluster((bootstrap,)))
    try:
        start, stop = log.starts(topic, [0])[0], log.ends(topic, [0], stable=True)[0]
        wanted = by_the_client(bootstrap, topic, start, stop)
        begins = [
            at for at in (start, start + 1, start + (stop - start) // 3, stop - 2, stop - 1) if start <= at < stop
        ]
        found = {begin: by_columns(log.batches(topic, 0, begin, stop)) for begin in begins}
    finally:
        log.close()
    if by_the_client(bootstrap, topic, start, stop) != wanted:  # the log was compacted in between
        return require_equal(bootstrap, topic, at_least)
    assert len(wanted) >= at_least
    for begin in begins:
        assert found[begin] == [row for row in wanted if row[0] >= begin]
    return wanted


@pytest.mark.parametrize("stamps", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_batches_of_one_and_of_thousands_in_every_compression(kafka, codec, stamps):
    topic = make_topic(kafka, topic_name(), config={"message.timestamp.type": stamps})
    many = records(6000)
    with KafkaProducer(
        bootstrap_servers=kafka, compression_type=codec, batch_size=1 << 20, linger_ms=200, max_request_size=1 << 22
    ) as producer:
        for key, value, stamp, _ in many:
            producer.send(topic, value, key=key, timestamp_ms=stamp)
    for one in records(3, seed=2):
        produce(kafka, topic, [one], compression=codec)
    found = require_equal(kafka, topic, 6003)
    assert [row[2:] for row in found[:6000]] == [(key, value) for key, value, _, _ in many]
    if stamps == "CreateTime":
        assert [row[1] for row in found[:6000]] == [stamp for _, _, stamp, _ in many]
    else:
        assert min(row[1] for row in found) > NOW_MS


def test_a_codec_of_the_topic_itself(kafka):
    """The broker compresses what came without."""
    topic = make_topic(kafka, topic_name(), config={"compression.type": "zstd"})
    produce(kafka, topic, records(2000))
    require_equal(kafka, topic, 2000)


def test_headers_are_passed_over(kafka):
    topic = make_topic(kafka, topic_name())
    with KafkaProducer(bootstrap_servers=kafka, linger_ms=100) as producer:
        for number, (key, value, stamp, _) in enumerate(records(400)):
            headers = [("h" * (number % 200), b"x" * (number % 300))] * (number % 4)
            producer.send(topic, value, key=key, timestamp_ms=stamp, headers=headers)
    require_equal(kafka, topic, 400)


def test_records_of_aborted_transactions_and_markers_are_left_out(kafka):
    topic = make_topic(kafka, topic_name())
    kept = []
    for number in range(12):
        some = records(50, seed=number)
        abort = number % 3 == 1
        transaction = None if number % 4 == 0 and not abort else topic_name("t")
        produce(kafka, topic, some, transactional_id=transaction, abort=abort)
        kept += [] if abort else [(key, value) for key, value, _, _ in some]
    found = require_equal(kafka, topic, 400)
    assert [row[2:] for row in found] == kept


def test_an_open_transaction_ends_what_is_read(kafka):
    topic = make_topic(kafka, topic_name())
    produce(kafka, topic, records(50))
    with KafkaProducer(bootstrap_servers=kafka, transactional_id=topic_name("t")) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for key, value, stamp, place in records(30, seed=2):
            producer.send(topic, value, key=key, timestamp_ms=stamp, partition=place)
        producer.flush()
        produce(kafka, topic, records(20, seed=3))
        assert len(require_equal(kafka, topic)) == 50
        producer.abort_transaction()
    assert len(require_equal(kafka, topic)) == 70


def test_gaps_of_compaction(kafka):
    """Batches from which the cleaner took records, and all of whose records it took."""
    topic = make_topic(
        kafka,
        topic_name(),
        config={
            "cleanup.policy": "compact",
            "segment.ms": 100,
            "min.cleanable.dirty.ratio": 0,
            "max.compaction.lag.ms": 100,
            "delete.retention.ms": 0,
        },
    )
    rng = random.Random(3)
    for number in range(6):
        some = [(b"k%d" % rng.randrange(300), b"v%d" % number, None, 0) for _ in range(400)]
        produce(kafka, topic, some, compression=rng.choice([None, "lz4"]))
        time.sleep(0.2)
    for _ in patiently(lambda: f"still {len(found)} records: not compacted", 1):
        if len(found := require_equal(kafka, topic)) <= 1200:
            break
        produce(kafka, topic, [(b"last", b"", None, 0)])  # a later record closes the segment before it
    offsets = [row[0] for row in found]
    assert offsets == sorted(set(offsets))
    assert offsets[-1] - offsets[0] + 1 > len(offsets)


def test_records_without_a_time_stamp(kafka):
    """Which some producers write; the client cannot be told to, so the stamp is taken out of its requests."""
    from kafka.record.default_records import DefaultRecordBatchBuilder

    topic = make_topic(kafka, topic_name(), config={"message.timestamp.before.max.ms": (1 << 63) - 1})
    append = DefaultRecordBatchBuilder.append
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            DefaultRecordBatchBuilder,
            "append",
            lambda self, offset, stamp, key, value, headers: append(self, offset, -1, key, value, headers),
        )
        produce(kafka, topic, records(100))
    assert {row[1] for row in require_equal(kafka, topic, 100)} == {-1}


@pytest.mark.parametrize("most_bytes", [100_000, 5_000], ids=["too-many-records", "too-large-a-record"])
def test_a_batch_that_its_topic_finds_too_large_is_an_error_that_names_it(kafka, most_bytes):
    topic = make_topic(kafka, topic_name(), 1, {"max.message.bytes": most_bytes})
    producer = KafkaPythonCluster((kafka,)).producer(topic)
    try:
        producer.init_transactions()
        producer.begin()
        for number in range(50):
            producer.send(Record(topic, 0, b"k", b"v" * 12_000, NOW_MS + number))
        with pytest.raises(BrokerError, match=rf"max\.message\.bytes.*topic {topic}, partition 0, 600,050 bytes of 50"):
            producer.flush()
    finally:
        producer.discard()
