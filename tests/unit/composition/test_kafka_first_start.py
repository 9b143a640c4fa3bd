"""The first start of an epoch on the model of Kafka: what it writes, and what it refuses without writing anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.fake_kafka import FakeCluster, run_on
from support.fake_kafka_broker import FakeBroker
from support.fake_kafka_host import Host
from support.kafka_model import CONFIG, PIPELINE, SOURCE, START_MS

from sfm_stream.composition.kafka_first_start import first_start
from sfm_stream.composition.kafka_names import names_of
from sfm_stream.config.config import Config, parse_config
from sfm_stream.errors import StateError
from sfm_stream.pipeline.counting.position import decode_state
from sfm_stream.transport.kafka.ledger import Ledger
from sfm_stream.transport.kafka.topic_log import TopicLog

PARTITIONS = range(2)
MINUTE_MS = 60_000


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> FakeBroker:
    broker = FakeBroker(START_MS)
    run_on(broker, monkeypatch)
    for topic in (SOURCE, *(f"{PIPELINE}.{name}" for name in ("outbox", "ledger", "sketches"))):
        broker.create(topic, len(PARTITIONS))
    return broker


def config(epoch: int = 1, start_minute: int = 0) -> Config:
    start = f"start = 2026-01-01T00:{start_minute:02}:00Z"
    text = CONFIG.replace("[pipeline]", f"[pipeline]\nepoch = {epoch}").replace("start = 2026-01-01T00:00:00Z", start)
    return parse_config(text, Path())


def begun(broker: FakeBroker, loaded: Config, host: Host | None = None) -> bool:
    cluster = FakeCluster(broker=broker, host=host)
    return first_start(loaded, names_of(loaded), cluster, TopicLog(cluster), "the input", PARTITIONS)


def epochs(broker: FakeBroker, partition: int) -> dict[str, int]:
    """Worker to the first border of its epoch, as the ledger has it."""
    entries = Ledger(TopicLog(FakeCluster(broker=broker)), f"{PIPELINE}.ledger").entries(partition, 1)
    return {worker: decode_state(entry.commit).start_ms for worker, entry in entries.items()}


def test_every_partition_gets_a_position_once(broker: FakeBroker) -> None:
    assert begun(broker, config())
    assert not begun(broker, config())
    for partition in PARTITIONS:
        assert epochs(broker, partition) == {"ingest/1": START_MS}


def test_a_new_epoch_begins_where_it_says_and_not_before_an_earlier_one_has_ended(broker: FakeBroker) -> None:
    assert begun(broker, config(start_minute=5))
    with pytest.raises(StateError, match=r"epoch 2 of pipeline model follows epoch 1: set window\.start to"):
        begun(broker, config(epoch=2, start_minute=4))
    assert begun(broker, config(epoch=2, start_minute=6))
    for partition in PARTITIONS:
        assert epochs(broker, partition) == {
            "ingest/1": START_MS + 5 * MINUTE_MS,
            "ingest/2": START_MS + 6 * MINUTE_MS,
        }


class Joining(Host):
    """A worker of epoch 1 joins its group when the entries of the new epoch are sent, and not before."""

    def __init__(self, broker: FakeBroker) -> None:
        super().__init__(broker)
        self.calls: list[str] = []

    def call(self, name: str, effect: Callable[[], Any]) -> Any:
        self.calls.append(name)
        answer = super().call(name, effect)
        if name == "produce":
            self._broker.group("model.ingest.1").join("", None, 30.0)
        return answer


def test_workers_of_another_epoch_are_looked_for_when_the_entries_are_sent(broker: FakeBroker) -> None:
    """A worker that joined before would not see the entries; one that joins later waits for them."""
    assert begun(broker, config())
    host = Joining(broker)
    with pytest.raises(StateError, match="workers of epoch 1 are running: stop them"):
        begun(broker, config(epoch=2, start_minute=5), host)
    for partition in PARTITIONS:
        assert set(epochs(broker, partition)) == {"ingest/1"}
    # Whoever does the same is fenced before anything is read: else both might find that the epoch never began.
    assert host.calls[0] == "init", host.calls
