"""What one writes without a framework: a client, msgspec, a set for each page and minute.   by_hand.py CLIENT

CLIENT is confluent or kafka-python. A window is closed when the time of events is five seconds past its end. Nothing is
kept for a restart: after a crash the open windows are gone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator

import msgspec

SERVERS, TOPIC, OUT, GROUP = (os.environ[name] for name in ("BOOTSTRAP", "TOPIC", "OUT", "GROUP"))
MINUTE_MS, GRACE_MS = 60_000, 5_000


class Event(msgspec.Struct):
    page: str
    user: str
    ts: int


def confluent() -> tuple[Iterator[list[bytes]], Callable[[bytes], object], Callable[[], object]]:
    from confluent_kafka import Consumer, Producer

    consumer = Consumer(
        {
            "bootstrap.servers": SERVERS,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "fetch.queue.backoff.ms": 2,
            "queued.min.messages": 400_000,
        }
    )
    consumer.subscribe([TOPIC])
    producer = Producer({"bootstrap.servers": SERVERS, "linger.ms": 20})

    def batches() -> Iterator[list[bytes]]:
        while True:
            yield [message.value() for message in consumer.consume(1000, 1.0)]

    return batches(), lambda answer: producer.produce(OUT, answer), producer.flush


def kafka_python() -> tuple[Iterator[list[bytes]], Callable[[bytes], object], Callable[[], object]]:
    from kafka import KafkaConsumer, KafkaProducer

    consumer = KafkaConsumer(
        TOPIC, bootstrap_servers=SERVERS, group_id=GROUP, auto_offset_reset="earliest", max_poll_records=1000
    )
    producer = KafkaProducer(bootstrap_servers=SERVERS, linger_ms=20)

    def batches() -> Iterator[list[bytes]]:
        while True:
            yield [record.value for records in consumer.poll(timeout_ms=1000).values() for record in records]

    return batches(), lambda answer: producer.send(OUT, answer), producer.flush


def main() -> None:
    batches, send, flush = {"confluent": confluent, "kafka-python": kafka_python}[sys.argv[1]]()
    decode = msgspec.json.Decoder(Event).decode
    total, seen, latest_ms = int(os.environ["TOTAL"]), 0, 0
    windows: dict[int, dict[str, set[str]]] = {}
    for values in batches:
        for value in values:
            event = decode(value)
            pages = windows.setdefault(event.ts - event.ts % MINUTE_MS, {})
            pages.setdefault(event.page, set()).add(event.user)
            latest_ms = max(latest_ms, event.ts)
        for start in [start for start in windows if latest_ms >= start + MINUTE_MS + GRACE_MS]:
            for page, users in windows.pop(start).items():
                send(json.dumps({"page": page, "start": start, "n": len(users)}).encode())
        seen += len(values)
        if seen >= total:
            break
    flush()
    os._exit(0)


if __name__ == "__main__":
    main()
