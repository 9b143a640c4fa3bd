"""The producer of transactions: what is sent, when, and which error is raised."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from kafka.errors import OutOfOrderSequenceNumberError

from sfm_stream.transport.kafka.kafka_python import producer as module
from sfm_stream.transport.kafka.kafka_python.batch_body import body
from sfm_stream.transport.kafka.kafka_python.producer import KafkaPythonProducer
from sfm_stream.types import Record


def record(number: int, topic: str = "outbox", partition: int = 0, at_ms: int = 0) -> Record:
    return Record(topic, partition, b"k%d" % number, b"v%d" % number, at_ms or 100 + number)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What the client was told: batches as it gets them, and the names of its methods."""
    told: list[object] = []

    def append_batch(client: object, *batch: object) -> object:
        told.append(batch)
        return SimpleNamespace(get=lambda timeout: client.outcome(timeout))  # type: ignore[attr-defined]

    monkeypatch.setattr(module, "append_batch", append_batch)
    return told


def producer_of(said: list[object], outcome=lambda timeout: None) -> KafkaPythonProducer:
    names = ("begin_transaction", "flush", "commit_transaction", "abort_transaction")
    client = SimpleNamespace(**{name: lambda name=name: said.append(name) for name in names}, outcome=outcome)
    return KafkaPythonProducer(client, nullcontext)


def test_records_go_out_in_batches_of_a_partition_once_all_are_there(said):
    records = [record(1), record(2, partition=1), record(3, at_ms=500), record(4, "ledger"), record(5)]
    producer = producer_of(said)
    producer.begin()
    for each in records:
        producer.send(each)
    assert said == ["begin_transaction"]
    producer.flush()
    first = [records[0], records[2], records[4]]
    assert said[1:] == [
        ("outbox", 0, body(first), 3, 101, 500),
        ("outbox", 1, body([records[1]]), 1, 102, 102),
        ("ledger", 0, body([records[3]]), 1, 104, 104),
        "flush",
    ]
    producer.commit()
    assert said[-1] == "commit_transaction"
    assert said.count("flush") == 1, "nothing is sent twice"


def test_no_record_of_a_transaction_that_was_given_up_is_in_the_next(said):
    producer = producer_of(said)
    producer.begin()
    producer.send(record(1))
    producer.abort()
    producer.begin()
    producer.send(record(2))
    producer.commit()
    assert said == [
        "begin_transaction",
        "abort_transaction",
        "begin_transaction",
        ("outbox", 0, body([record(2)]), 1, 102, 102),
        "flush",
        "commit_transaction",
    ]


def test_an_error_of_a_batch_is_raised_and_nothing_is_committed(said):
    """The client's own flush() waits for batches, and says nothing of how they ended."""
    asked = []

    def refused(timeout: float) -> None:
        asked.append(timeout)
        raise OutOfOrderSequenceNumberError

    producer = producer_of(said, refused)
    producer.begin()
    producer.send(record(1))
    with pytest.raises(OutOfOrderSequenceNumberError):
        producer.commit()
    assert asked == [0], "flush() has waited already"
    assert "commit_transaction" not in said
