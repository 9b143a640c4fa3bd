"""Hands the producer whole batches, with the bytes of their records. One by one, each would cost it a lock, a future,
its own bytes and four lines of a log that nobody reads: a fifth of what a release costs.

A batch is what the producer would have made itself. From there on it is the producer's: its header and checksum, its
sequence numbers, its transaction, and every retry.
"""

from __future__ import annotations

from typing import Any

import kafka.errors as kafka_errors
from kafka import KafkaProducer
from kafka.producer.future import FutureRecordMetadata
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.memory_records import MemoryRecordsBuilder
from kafka.structs import TopicPartition

from sfm_stream.transport.kafka.kafka_python.hooks.private_names import PrivateNames

RELIES_ON: PrivateNames = {
    "kafka.producer.kafka:KafkaProducer": {
        "_accumulator": "what waits to be sent",
        "_sender": "the thread that sends; it is woken",
        "_transaction_manager": "it is told of the partition before anything of it waits",
    },
    "kafka.producer.record_accumulator:RecordAccumulator": {
        "_appends_in_progress": "a forced close waits until none is, so that no batch is forgotten",
        "_closed": "nothing is added from then on",
        "_tp_lock(self, tp)": "it is held while a batch is added",
        "_batches": "partition to the batches that wait, in order",
        "_incomplete": "what flush() waits for",
    },
    "kafka.producer.producer_batch:ProducerBatch": {
        "_record_futures": "one for each record; where a batch is split, each is bound to the half that it is in",
    },
    "kafka.record.memory_records:MemoryRecordsBuilder": {
        "_builder": "the bytes; with magic 2 a DefaultRecordBatchBuilder",
        "_next_offset": "the number of records",
    },
    "kafka.record.default_records:DefaultRecordBatchBuilder": {
        "_buffer": "room for the header, then the records",
        "_first_timestamp": "of the first record",
        "_max_timestamp": "the largest",
        "_last_offset": "the place of the last record",
        "_num_records": "their number",
    },
}
_MAGIC = 2


def append_batch(
    producer: KafkaProducer, topic: str, partition: int, body: bytearray, count: int, first_ms: int, last_ms: int
) -> Any:
    """Add a batch to the transaction of a producer. Returns a future of the client that is done when the batch is.

    body: `count` records (batch_body.py), whose times begin with first_ms and reach up to last_ms. It is the producer's
    from then on.
    Raises errors of the client.
    """
    if partition not in producer.partitions_for(topic):
        raise kafka_errors.UnknownTopicOrPartitionError(f"{topic}, partition {partition}")
    place = TopicPartition(topic, partition)
    records = MemoryRecordsBuilder(_MAGIC, producer.config["compression_attrs"], producer.config["batch_size"])
    inner = records._builder
    inner._buffer = body
    inner._first_timestamp, inner._max_timestamp = first_ms, last_ms
    inner._last_offset, inner._num_records = count - 1, count
    records._next_offset = count
    batch = ProducerBatch(place, records)
    # The first record's stands for all: where a batch is split its future goes on, and with it whoever waits.
    future = FutureRecordMetadata(batch.produce_future, 0, first_ms, None, -1, -1, -1)
    batch._record_futures.append(future)
    accumulator = producer._accumulator
    producer._transaction_manager.maybe_add_partition_to_transaction(place)
    accumulator._appends_in_progress.increment()
    try:
        with accumulator._tp_lock(place):
            if accumulator._closed:
                raise kafka_errors.IllegalStateError("the producer is closed")
            accumulator._batches[place].append(batch)
            accumulator._incomplete.add(batch)
    finally:
        accumulator._appends_in_progress.decrement()
    producer._sender.wakeup()
    return future
