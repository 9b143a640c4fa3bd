"""Writes one topic of page events.   write_topic.py confluent | kafka-python

Key is the page and the time stamp of a record its event time, so that no peer has to copy the topic first. Batches are
of 16 KiB, the default of the Java producer, or of one record, as from a producer that does not linger.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from page_events import events, key, partition_of, value


def confluent(servers: str, topic: str, one_a_batch: bool) -> tuple[Callable[..., object], Callable[[], object]]:
    from confluent_kafka import Producer

    few = {"batch.num.messages": 1, "linger.ms": 0} if one_a_batch else {"batch.size": 16384, "linger.ms": 50}
    producer = Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": 200_000, **few})

    def send(key: bytes, value: bytes, at_ms: int, partition: int) -> None:
        while True:
            try:
                return producer.produce(topic, value, key, partition, timestamp=at_ms)
            except BufferError:
                producer.poll(0.05)

    return send, producer.flush


def kafka_python(servers: str, topic: str, one_a_batch: bool) -> tuple[Callable[..., object], Callable[[], object]]:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=servers, batch_size=0 if one_a_batch else 16384, linger_ms=50)

    def send(key: bytes, value: bytes, at_ms: int, partition: int) -> None:
        producer.send(topic, value, key, partition=partition, timestamp_ms=at_ms)

    return send, producer.flush


def main() -> None:
    given = json.loads(os.environ["TOPIC_OF_EVENTS"])
    client = {"confluent": confluent, "kafka-python": kafka_python}[sys.argv[1]]
    send, flush = client(os.environ["BOOTSTRAP"], os.environ["TOPIC"], given["one_a_batch"])
    pages, partitions = given["pages"], given["partitions"]
    owner = [partition_of(page, partitions) for page in range(pages)]
    for page, user, at_ms, number in events(pages, given["windows"], given["window_events"], given["start_ms"]):
        send(key(page), value(page, user, at_ms, number), at_ms, owner[page])
    flush()
    # Without the wait for threads and destructors of the client.
    os._exit(0)


if __name__ == "__main__":
    main()
