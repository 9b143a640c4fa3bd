"""Readers that need all that was committed, on the model of Kafka: a topic, the ledger, and a first start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kafka.errors as kafka_errors
import pytest
from support.fake_kafka import FakeCluster, run_on
from support.fake_kafka_broker import FakeBroker
from support.fake_kafka_host import Host
from support.rollup_runs import release

from sfm_stream.composition.kafka_first_checks import require_unreleased
from sfm_stream.composition.kafka_names import Names
from sfm_stream.errors import BrokerAway, StateError
from sfm_stream.transport.kafka.ledger import Ledger
from sfm_stream.transport.kafka.topic_log import TopicLog


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeBroker:
    cluster = FakeBroker()
    run_on(cluster, monkeypatch)
    cluster.create("t", 1)
    cluster.log(("t", 0)).append([(b"w/0", b'[1,3,"","first"]', 1)])
    cluster.log(("t", 0)).hold(cluster.monotonic_s() + 9)
    cluster.log(("t", 0)).append([(b"w/0", b'[1,7,"","second"]', 2)])
    return cluster


def values(log: TopicLog, patience_s: float) -> list[bytes]:
    return [stored.value for stored in log.read("t", patience_s=patience_s)]


def test_all_that_was_appended_is_waited_for_where_the_reader_has_patience(cluster: FakeBroker) -> None:
    log = TopicLog(FakeCluster(broker=cluster))
    assert len(values(log, 0)) == 1
    with pytest.raises(BrokerAway):
        values(log, 3)
    assert len(values(log, 20)) == 2


def test_a_position_above_the_high_watermark_is_not_passed_over(cluster: FakeBroker) -> None:
    ledger = Ledger(TopicLog(FakeCluster(broker=cluster)), "t")
    with pytest.raises(BrokerAway):
        ledger.entries(0, 1)
    assert ledger.entries(0, 20)["w"].commit.offset == 7


def test_a_first_start_waits_for_releases_that_are_not_readable_yet(cluster: FakeBroker) -> None:
    """One that is still undecided would be drawn again, if its transaction is committed after all."""
    names = Names("p", 1, "t")
    for topic in (names.outbox, names.sketches):
        cluster.create(topic, 1)
    log = TopicLog(FakeCluster(broker=cluster))
    require_unreleased(log, names, [0], 0)
    cluster.log((names.outbox, 0)).hold(cluster.monotonic_s() + 9)
    cluster.log((names.outbox, 0)).append([(b"k", release(0, window_ms=60_000, pipeline="p"), 1)])
    with pytest.raises(StateError, match="holds releases of epoch 1"):
        require_unreleased(log, names, [0], 0)


def test_a_ledger_whose_end_is_not_known_says_nothing(cluster: FakeBroker) -> None:
    class Away(Host):
        def call(self, name: str, effect: Callable[[], Any]) -> Any:
            if name == "log end":
                raise kafka_errors.KafkaConnectionError
            return super().call(name, effect)

    ledger = Ledger(TopicLog(FakeCluster(broker=cluster, host=Away(cluster))), "t")
    assert ledger.ends([0]) == {}
    with pytest.raises(BrokerAway, match="where it ends"):
        ledger.entries(0, 0.5)


def test_log_ends_are_asked_for_again_while_there_is_patience(cluster: FakeBroker) -> None:
    class LateAnswers(Host):
        asked = 0

        def call(self, name: str, effect: Callable[[], Any]) -> Any:
            if name == "log end":
                self.asked += 1
                if self.asked < 3:
                    raise kafka_errors.KafkaConnectionError
            return super().call(name, effect)

    host = LateAnswers(cluster)
    ledger = Ledger(TopicLog(FakeCluster(broker=cluster, host=host)), "t")
    assert ledger.ends([0]) == {}
    assert ledger.ends([0], 20) == {0: 2}
