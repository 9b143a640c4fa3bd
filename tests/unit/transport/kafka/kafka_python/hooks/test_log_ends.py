"""Who has to say what before a log end is told: the client's own code over scripted brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import kafka.errors as kafka_errors
import pytest

from sfm_stream.transport.kafka.kafka_python.hooks.log_ends import LogEndAdmin, ReplicaAnswers

SILENT = object()


@dataclass
class Broker:
    """A replica of partition 0. raises: instead of an answer; SILENT: nothing comes at all."""

    end: int
    epoch: int = 7
    raises: Any = None
    leads: bool = True
    """Whether it thinks so; asked by one who knows the debugging replica it does not matter."""
    knows_debugging: bool = True

    def answer(self, request: Any) -> tuple[int, int]:
        [topic] = request.topics
        [part] = topic.partitions
        assert (request.replica_id, part.timestamp) == (-2, -1)
        if part.current_leader_epoch < self.epoch:
            return kafka_errors.FencedLeaderEpochError.errno, -1
        if part.current_leader_epoch > self.epoch:
            return kafka_errors.UnknownLeaderEpochError.errno, -1
        if not self.leads and not self.knows_debugging:
            return kafka_errors.NotLeaderForPartitionError.errno, -1
        return 0, self.end


@dataclass
class Manager:
    """As of kafka-python, with brokers that answer as they are told to."""

    brokers: dict[int, Broker]
    asked: list[int] = field(default_factory=list)
    over: bool = False
    """Whether nothing more was to come when the test stopped waiting."""
    tasks: list[Any] = field(default_factory=list, repr=False)
    """Held here: what nobody holds may be collected while it waits, and is then over."""

    def call_soon(self, work: Callable[..., Any], *arguments: Any) -> Any:
        self.tasks.append(asyncio.ensure_future(work(*arguments)))
        return self.tasks[-1]

    async def send(self, request: Any, node_id: int) -> Any:
        self.asked.append(node_id)
        broker = self.brokers[node_id]
        if broker.raises is SILENT:
            self.tasks.append(silence := asyncio.get_running_loop().create_future())
            await silence
        if broker.raises is not None:
            raise broker.raises
        code, offset = broker.answer(request)
        part = SimpleNamespace(partition_index=0, error_code=code, offset=offset)
        return SimpleNamespace(topics=[SimpleNamespace(partitions=[part])])


def ask(
    brokers: dict[int, Broker], leader: int = 1, in_sync: tuple[int, ...] = (1, 2, 3), epoch: int = 7
) -> tuple[ReplicaAnswers, Manager]:
    """What metadata with this leader, these replicas and this epoch lead to."""
    manager = Manager(brokers)
    admin = LogEndAdmin.__new__(LogEndAdmin)
    admin._manager = manager

    async def metadata(topics: list[str]) -> Any:
        part = {"partition_index": 0, "leader_id": leader, "leader_epoch": epoch, "isr_nodes": list(in_sync)}
        return {"topics": [{"partitions": [part]}]}

    admin._get_cluster_metadata = metadata

    async def run() -> ReplicaAnswers:
        answers = admin.ask_log_ends("t", [0])
        for _ in range(20):
            await asyncio.sleep(0)
        manager.over = answers.over.is_set()
        return answers

    return asyncio.run(run()), manager


def test_the_end_is_the_leaders_once_all_in_sync_have_answered_in_its_epoch() -> None:
    answers, manager = ask({1: Broker(12), 2: Broker(5, leads=False), 3: Broker(9, leads=False)})
    assert (answers.told, answers.refused, answers.why) == ({0: 12}, set(), {})
    assert manager.over
    assert sorted(manager.asked) == [1, 2, 3]


def test_a_replica_that_is_not_in_sync_is_not_asked() -> None:
    answers, _ = ask({1: Broker(12), 2: Broker(5, leads=False), 3: Broker(0, raises=SILENT)}, in_sync=(1, 2))
    assert answers.told == {0: 12}


@pytest.mark.parametrize("stale", [(1, 2, 3), (1, 3)])
def test_a_leader_that_stood_still_is_not_believed(stale: tuple[int, ...]) -> None:
    """It and its metadata are of epoch 7, and agree; another one leads in epoch 8 and has acknowledged more."""
    brokers = {1: Broker(12, epoch=7), 2: Broker(20, epoch=8, leads=False), 3: Broker(25, epoch=8)}
    answers, _ = ask(brokers, in_sync=stale)
    assert not answers.told
    assert not answers.refused
    assert "FencedLeaderEpoch" in answers.why[0]


@pytest.mark.parametrize("broker", [1, 2])
@pytest.mark.parametrize(
    "harm",
    [
        Broker(12, raises=SILENT),
        Broker(12, raises=kafka_errors.RequestTimedOutError()),
        Broker(12, raises=kafka_errors.KafkaConnectionError()),
        Broker(12, raises=kafka_errors.NodeNotReadyError()),
        Broker(12, epoch=6),
    ],
)
def test_one_that_does_not_answer_keeps_the_end_from_being_told(broker: int, harm: Broker) -> None:
    answers, manager = ask({1: Broker(12), 2: Broker(12, leads=False), 3: Broker(12, leads=False)} | {broker: harm})
    assert (answers.told, answers.refused, list(answers.why)) == ({}, set(), [0])
    assert manager.over == (harm.raises is not SILENT)


@pytest.mark.parametrize(
    "other",
    [
        Broker(12, leads=False, knows_debugging=False),
        Broker(12, raises=kafka_errors.IncompatibleBrokerVersion()),
        Broker(12, raises=kafka_errors.InvalidRequestError()),
    ],
)
def test_a_broker_that_does_not_know_the_debugging_replica_is_told_from_one_that_is_away(other: Broker) -> None:
    """Such a leader may answer with its high watermark: a follower shows it, for it sends the asker to the leader."""
    answers, _ = ask({1: Broker(12), 2: other, 3: Broker(12, leads=False)})
    assert (answers.told, answers.refused) == ({}, {0})


@pytest.mark.parametrize(("leader", "epoch"), [(-1, 7), (4, 7), (1, -1)])
def test_without_a_leader_or_its_epoch_nobody_is_asked(leader: int, epoch: int) -> None:
    answers, manager = ask({}, leader=leader, epoch=epoch)
    assert manager.over
    assert not answers.told
    assert not manager.asked
