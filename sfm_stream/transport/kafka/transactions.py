"""Transactions that never hang: each is committed, refused, or of unknown outcome, which settle() then decides."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

from sfm_stream.errors import BrokerAway, BrokerError, SfmStreamError
from sfm_stream.transport.kafka.cluster import Cluster, Producer
from sfm_stream.transport.kafka.cluster_values import GroupOffset, Membership, TopicPartition
from sfm_stream.types import Record

_log = logging.getLogger(__name__)
T = TypeVar("T")


class UnknownOutcome(BrokerAway):
    """A transaction failed, and it is not known whether it is committed."""


class Transactions:
    """Transactions under one transactional id. After every error the producer is replaced: its state is unknown."""

    def __init__(self, cluster: Cluster, transactional_id: str) -> None:
        self._cluster, self.transactional_id = cluster, transactional_id
        self._producer: Producer | None = None
        self._patience_s = 2 * cluster.transaction_ms / 1000

    def commit(
        self,
        records: Sequence[Record],
        offsets: Mapping[TopicPartition, GroupOffset],
        membership: Membership | None,
        before_commit: Callable[[], None] = lambda: None,
    ) -> None:
        """Commit records and offsets in one transaction. record.topic is a real name; offsets need a membership.

        before_commit: called when everything is sent. If it raises an SfmStreamError, the transaction is aborted and
        the error is raised here. Raises BrokerError if the cluster refuses for good. Raises UnknownOutcome: then call
        settle() before anything else is sent, or concluded about this transaction.
        """
        producer = self._producer or self.settle()
        try:
            refusal = _watched(
                lambda: _perform(producer, records, offsets, membership, before_commit), self._patience_s
            )
        except Exception as error:
            said = error.__cause__ or error  # the client's own words, where there are some
            words = f"{type(said).__name__}: {said}"
            _log.warning("a transaction of %s failed: %s", self.transactional_id, words)
            self._abandon()
            if not isinstance(error, BrokerAway | TimeoutError):
                raise
            raise UnknownOutcome(f"transaction of {self.transactional_id}: {words}") from error
        if refusal is not None:
            raise refusal

    def settle(self) -> Producer:
        """A new producer under the same id. The transaction that an earlier one left open is committed or aborted now.

        Raises BrokerAway if the coordinator does not answer, BrokerError if it refuses.
        """
        self._abandon()
        producer = self._cluster.producer(self.transactional_id)
        try:
            try:
                _watched(producer.init_transactions, self._patience_s)
            except TimeoutError as error:
                raise BrokerAway(f"{self._cluster.name}: {type(error).__name__}") from error
        except BrokerError as error:
            producer.discard()
            raise type(error)(f"transactions of {self.transactional_id} are not to be had: {error}") from error
        self._producer = producer
        return producer

    def close(self) -> None:
        """Drop the producer. To be called between transactions."""
        self._abandon()

    def _abandon(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.discard()


def _perform(
    producer: Producer,
    records: Sequence[Record],
    offsets: Mapping[TopicPartition, GroupOffset],
    membership: Membership | None,
    before_commit: Callable[[], None],
) -> SfmStreamError | None:
    """None if the transaction is committed; the error of before_commit if that aborted it.

    The records are in the log before the offsets are sent: whoever sees the offsets must find the records.
    """
    producer.begin()
    for record in records:
        producer.send(record)
    producer.flush()
    if offsets:
        assert membership is not None
        producer.send_offsets(offsets, membership)
    try:
        before_commit()
    except BaseException as error:
        producer.abort()
        if isinstance(error, SfmStreamError):
            return error
        raise
    producer.commit()
    return None


def _watched(work: Callable[[], T], patience_s: float) -> T:
    """The result of `work`, run in its own thread as a call of the client may block for ever. Raises TimeoutError."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=run, name="transaction", daemon=True).start()
    return outcome.result(timeout=patience_s)
