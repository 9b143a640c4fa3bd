"""What becomes of a transaction that fails: its producer is not used again, and what it means is one error."""

from __future__ import annotations

from types import SimpleNamespace

import kafka.errors as kafka_errors
import pytest

from sfm_stream.errors import BrokerError, ConfigError
from sfm_stream.transport.kafka.cluster_values import GroupOffset, Membership, TopicPartition
from sfm_stream.transport.kafka.kafka_python.client import KafkaPythonCluster
from sfm_stream.transport.kafka.kafka_python.producer import KafkaPythonProducer
from sfm_stream.transport.kafka.transactions import Transactions, UnknownOutcome

OFFSETS = {TopicPartition("t", 0): GroupOffset(7, "")}
MEMBERSHIP = Membership("group", "member", 1, True)


def sending(error: Exception) -> Transactions:
    """Transactions in which the offsets cannot be sent."""

    def refuse(*_: object) -> None:
        raise error

    cluster = KafkaPythonCluster(("there:1",))
    client = SimpleNamespace(
        begin_transaction=lambda: None,
        flush=lambda: None,
        send_offsets_to_transaction=refuse,
        abort_transaction=lambda: None,
        _sender=None,
        close=lambda timeout: None,
    )
    transactions = Transactions(cluster, "mine")
    transactions._producer = KafkaPythonProducer(client, cluster.translated)
    return transactions


@pytest.mark.parametrize(
    ("error", "becomes"),
    [
        (kafka_errors.ProducerFencedError(), UnknownOutcome),
        (kafka_errors.KafkaError("for unknown reasons"), UnknownOutcome),
        (TimeoutError(), UnknownOutcome),
        (kafka_errors.TopicAuthorizationFailedError("t"), BrokerError),
        (kafka_errors.MessageSizeTooLargeError(), BrokerError),
        (TypeError(), TypeError),
    ],
    ids=lambda it: type(it).__name__,
)
def test_after_an_error_in_a_transaction_its_producer_is_never_used_again(error, becomes):
    transactions = sending(error)
    with pytest.raises(becomes) as raised:
        transactions.commit([], OFFSETS, MEMBERSHIP)
    assert type(raised.value) is becomes
    assert transactions._producer is None


def test_what_is_found_before_a_commit_passes_as_it_is():
    def refuse() -> None:
        raise ConfigError("not now")

    with pytest.raises(ConfigError):
        sending(RuntimeError()).commit([], {}, None, refuse)
