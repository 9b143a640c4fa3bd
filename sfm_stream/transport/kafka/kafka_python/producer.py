"""Transactions, each run watched: done, or of unknown outcome and settled before anything else is sent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

from kafka import KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from sfm_stream.errors import BrokerAway, BrokerError, SfmStreamError
from sfm_stream.transport.kafka.kafka_python.client import Connection
from sfm_stream.transport.kafka.kafka_python.troubles import Verdict, verdict
from sfm_stream.types import Record

_log = logging.getLogger(__name__)
T = TypeVar("T")


class UnknownOutcome(BrokerAway):
    """A transaction failed at a step after which nobody here knows whether it is committed."""


class Transactions:
    """A transactional producer, renewed after every error: one that has seen an error cannot be trusted again."""

    def __init__(self, connection: Connection, transactional_id: str) -> None:
        self._connection, self.transactional_id = connection, transactional_id
        self._producer: KafkaProducer | None = None
        self._patience_s = 2 * connection.transaction_ms / 1000

    def commit(
        self,
        records: Sequence[Record],
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        membership: Any,
        before_commit: Callable[[], None] = lambda: None,
    ) -> None:
        """Records and offsets in one transaction. record.topic is a real name here.

        before_commit: called when all is sent; what it raises aborts the transaction and is raised here.
        Raises UnknownOutcome; then settle() has to be called before anything is concluded or sent. Raises BrokerError
        where it is refused for good.
        """
        producer = self._producer or self.settle()
        try:
            _watched(lambda: _perform(producer, records, offsets, membership, before_commit), self._patience_s)
        except SfmStreamError:  # of before_commit; the transaction is aborted
            raise
        except Exception as error:
            _log.warning("a transaction of %s failed: %s: %s", self.transactional_id, type(error).__name__, error)
            self._abandon()
            with self._connection.speaking():
                if verdict(error) is not Verdict.AWAY:
                    raise
            raise UnknownOutcome(f"transaction of {self.transactional_id}: {type(error).__name__}: {error}") from error

    def settle(self) -> KafkaProducer:
        """A new producer under the same id: whatever an earlier one left open is committed or aborted after this.

        Raises BrokerAway where the coordinator does not answer, BrokerError where it refuses.
        """
        self._abandon()
        producer = self._connection.producer(self.transactional_id)
        try:
            with self._connection.speaking():
                _watched(producer.init_transactions, self._patience_s)
        except BrokerError as error:
            _dispose(producer)
            raise type(error)(f"transactions of {self.transactional_id} are not to be had: {error}") from error
        self._producer = producer
        return producer

    def close(self) -> None:
        """Between transactions there is nothing to lose."""
        self._abandon()

    def _abandon(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            _dispose(producer)


def _perform(
    producer: KafkaProducer,
    records: Sequence[Record],
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    membership: Any,
    before_commit: Callable[[], None],
) -> None:
    """Records first, and in the log, before the offsets: who finds the offsets accepted must find the records."""
    producer.begin_transaction()
    sent = [
        producer.send(
            record.topic, record.value, key=record.key, partition=record.partition, timestamp_ms=record.timestamp_ms
        )
        for record in records
    ]
    producer.flush()
    for future in sent:
        future.get(timeout=0)
    if offsets:
        producer.send_offsets_to_transaction(dict(offsets), membership)
    try:
        before_commit()
    except BaseException:
        producer.abort_transaction()
        raise
    producer.commit_transaction()


def _watched(work: Callable[[], T], patience_s: float) -> T:
    """The result of `work`, which runs in a thread of its own: a call of the client may block for ever."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=run, name="transaction", daemon=True).start()
    return outcome.result(timeout=patience_s)


def _dispose(producer: KafkaProducer) -> None:
    """End a producer without waiting for anything; its own close() would first wait for what is in flight."""
    with suppress(Exception):
        if producer._sender is not None:
            producer._sender.force_close()
    with suppress(Exception):
        producer.close(timeout=0)
