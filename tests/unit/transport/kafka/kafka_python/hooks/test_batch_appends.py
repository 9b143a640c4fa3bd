"""A batch that the producer is handed is the one that it would have made itself, and all is told that has to be."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kafka.errors import IllegalStateError, MessageSizeTooLargeError, UnknownTopicOrPartitionError
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.structs import TopicPartition

from sfm_stream.transport.kafka.kafka_python.batch_body import body
from sfm_stream.transport.kafka.kafka_python.hooks.batch_appends import append_batch
from sfm_stream.types import Record

PLACE = TopicPartition("outbox", 3)
RECORDS = [Record("outbox", 3, b"k%d" % number, b"v" * number, 1_000 + at) for number, at in enumerate((5, 90, 0, 40))]


class Producer(SimpleNamespace):
    """What the hook reaches of a producer of the client: its own accumulator, and notes of all else in `told`."""

    def __init__(self) -> None:
        told: list[object] = []
        accumulator = RecordAccumulator(batch_size=1 << 20)

        def waiting() -> int:
            return sum(map(len, accumulator._batches.values()))

        super().__init__(
            told=told,
            config={"compression_attrs": 0, "batch_size": 1 << 20},
            partitions_for=lambda topic: {0, 3} if topic == "outbox" else set(),
            _accumulator=accumulator,
            _transaction_manager=SimpleNamespace(
                maybe_add_partition_to_transaction=lambda place: told.append(("transaction", place, waiting()))
            ),
            _sender=SimpleNamespace(wakeup=lambda: told.append(("wakeup", waiting()))),
        )

    def append(self, records=RECORDS, partition=3):
        times = [record.timestamp_ms for record in records]
        return append_batch(self, "outbox", partition, body(records), len(records), times[0], max(times))

    @property
    def waiting(self):
        return list(self._accumulator._batches[PLACE])


def sent(batch) -> bytes:
    """The bytes that go to the broker once the sender has given the batch its place in the transaction."""
    batch.records.set_producer_state(7, 2, 11, True)
    batch.records.close()
    return bytes(batch.records.buffer())


def test_it_is_the_batch_that_the_client_makes_of_these_records():
    client, ours = RecordAccumulator(batch_size=1 << 20), Producer()
    for record in RECORDS:
        client.append(PLACE, record.timestamp_ms, record.key, record.value, [])
    ours.append()
    [wanted], [found] = client._batches[PLACE], ours.waiting
    assert (found.record_count, found.topic_partition) == (wanted.record_count, PLACE) == (len(RECORDS), PLACE)
    assert found.records.size_in_bytes() == wanted.records.size_in_bytes()
    assert sent(found) == sent(wanted)


def test_the_transaction_hears_of_the_partition_before_anything_waits_and_the_sender_after():
    producer = Producer()
    producer.append()
    assert producer.told == [("transaction", PLACE, 0), ("wakeup", 1)]


def test_batches_keep_their_order_and_flush_waits_for_each():
    producer = Producer()
    futures = [producer.append([record]) for record in RECORDS]
    counts = [(batch.records._builder._first_timestamp, batch.record_count) for batch in producer.waiting]
    assert counts == [(record.timestamp_ms, 1) for record in RECORDS]
    assert set(producer._accumulator._incomplete.all()) == set(producer.waiting)
    assert not any(future.is_done for future in futures)


def test_its_future_is_done_when_the_batch_is():
    producer = Producer()
    taken, refused = producer.append(), producer.append()
    first, second = producer.waiting
    first.complete(40, -1)
    assert taken.get(timeout=0).offset == 40
    assert not refused.is_done
    second.complete_exceptionally(MessageSizeTooLargeError(), lambda _: MessageSizeTooLargeError())
    with pytest.raises(MessageSizeTooLargeError):
        refused.get(timeout=0)


def test_whoever_waits_goes_on_waiting_where_the_client_splits_a_batch():
    producer = Producer()
    future = producer.append()
    batch = producer._accumulator._batches[PLACE].popleft()
    batch.records.close()
    assert producer._accumulator.split_and_reenqueue(batch) == 2
    first, second = producer.waiting
    assert (first.record_count, second.record_count) == (2, 2)
    second.complete(42, -1)
    assert not future.is_done
    first.complete(40, -1)
    assert future.get(timeout=0).offset == 40


def test_of_a_partition_that_is_not_there_the_transaction_hears_nothing():
    producer = Producer()
    with pytest.raises(UnknownTopicOrPartitionError, match="outbox, partition 1"):
        producer.append(partition=1)
    assert (producer.told, producer._accumulator._batches) == ([], {})


def test_a_producer_that_is_closed_is_given_nothing_and_waits_for_no_append():
    producer = Producer()
    producer._accumulator._closed = True
    with pytest.raises(IllegalStateError):
        producer.append()
    assert producer.waiting == producer._accumulator._incomplete.all() == []
    assert producer._accumulator._appends_in_progress.get() == 0
    producer._accumulator._closed = False
    producer.append()
    assert producer._accumulator._appends_in_progress.get() == 0
