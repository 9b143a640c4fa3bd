"""Who has to say what before a log end is told: the client's own code over scripted brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import kafka.errors as kafka_errors
import pytest
from support.fake_kafka import FakeConnection, Host, run_on
from support.fake_kafka_broker import FakeCluster
from support.rollup_runs import release

from sfm_stream.composition.kafka_first_start import Names, _require_unreleased
from sfm_stream.errors import BrokerAway, StateError
from sfm_stream.transport.kafka import idle_ends
from sfm_stream.transport.kafka.idle_ends import IdleEnds
from sfm_stream.transport.kafka.kafka_python.log_end import LogEndAdmin, Question
from sfm_stream.transport.kafka.kafka_python.topic_log import TopicLog
from sfm_stream.transport.kafka.ledger import Ledger
from sfm_stream.types import NO_TIME

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
    updates: int = 0
    asked: list[int] = field(default_factory=list)
    over: bool = False
    """Whether nothing more was to come when the test stopped waiting."""
    tasks: list[Any] = field(default_factory=list, repr=False)
    """Held here: what nobody holds may be collected while it waits, and is then over."""

    @property
    def cluster(self) -> Any:
        def request_update() -> None:
            self.updates += 1

        return SimpleNamespace(request_update=request_update)

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
) -> tuple[Question, Manager]:
    """What metadata with this leader, these replicas and this epoch lead to."""
    manager = Manager(brokers)
    admin = LogEndAdmin.__new__(LogEndAdmin)
    admin._manager = manager

    async def metadata(topics: list[str]) -> Any:
        part = {"partition_index": 0, "leader_id": leader, "leader_epoch": epoch, "isr_nodes": list(in_sync)}
        return {"topics": [{"partitions": [part]}]}

    admin._get_cluster_metadata = metadata

    async def run() -> Question:
        question = admin.ask_log_ends("t", [0])
        for _ in range(20):
            await asyncio.sleep(0)
        manager.over = question.over.is_set()
        return question

    return asyncio.run(run()), manager


def test_the_end_is_the_leaders_once_all_in_sync_have_answered_in_its_epoch() -> None:
    question, manager = ask({1: Broker(12), 2: Broker(5, leads=False), 3: Broker(9, leads=False)})
    assert (question.told, question.refused, question.why) == ({0: 12}, set(), {})
    assert manager.over
    assert sorted(manager.asked) == [1, 2, 3]


def test_a_replica_that_is_not_in_sync_is_not_asked() -> None:
    question, _ = ask({1: Broker(12), 2: Broker(5, leads=False), 3: Broker(0, raises=SILENT)}, in_sync=(1, 2))
    assert question.told == {0: 12}


@pytest.mark.parametrize("stale", [(1, 2, 3), (1, 3)])
def test_a_leader_that_stood_still_is_not_believed(stale: tuple[int, ...]) -> None:
    """It and its metadata are of epoch 7, and agree; another one leads in epoch 8 and has acknowledged more."""
    brokers = {1: Broker(12, epoch=7), 2: Broker(20, epoch=8, leads=False), 3: Broker(25, epoch=8)}
    question, _ = ask(brokers, in_sync=stale)
    assert not question.told
    assert not question.refused
    assert "FencedLeaderEpoch" in question.why[0]


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
    question, manager = ask({1: Broker(12), 2: Broker(12, leads=False), 3: Broker(12, leads=False)} | {broker: harm})
    assert (question.told, question.refused, list(question.why)) == ({}, set(), [0])
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
    question, _ = ask({1: Broker(12), 2: other, 3: Broker(12, leads=False)})
    assert (question.told, question.refused) == ({}, {0})


def test_a_broker_that_the_client_does_not_know_yet_is_looked_up() -> None:
    question, manager = ask({1: Broker(12), 2: Broker(12, raises=kafka_errors.UnknownBrokerIdError(2))}, in_sync=(1, 2))
    assert not question.told
    assert manager.updates == 1


@pytest.mark.parametrize(("leader", "epoch"), [(-1, 7), (4, 7), (1, -1)])
def test_without_a_leader_or_its_epoch_nobody_is_asked(leader: int, epoch: int) -> None:
    question, manager = ask({}, leader=leader, epoch=epoch)
    assert manager.over
    assert not question.told
    assert not manager.asked


# What comes of the answers


class Answers:
    """A TopicLog whose questions the test answers."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.questions: list[Question] = []
        self.now_s, self.high = 1000.0, {0: 5, 1: 5}
        patch.setattr(idle_ends, "monotonic_s", lambda: self.now_s)
        patch.setattr(idle_ends, "now_ms", lambda: int(self.now_s * 1000))
        self.idle = IdleEnds(self, "t")  # type: ignore[arg-type]
        self.at = {0: 5, 1: 5}

    def ask_log_ends(self, topic: str, partitions: list[int]) -> Question:
        self.questions.append(Question(topic, partitions))
        return self.questions[-1]

    def ends(self, topic: str, partitions: list[int], *, stable: bool) -> dict[int, int]:
        return {partition: self.high[partition] for partition in partitions}

    def turn(self, seconds: float = 0.0) -> list[tuple[int, int, int | None]]:
        self.now_s += seconds
        found = self.idle.reached(self.at, self.at.__getitem__)
        return [(end.partition, end.asked_ms, end.next_offset) for end in found]

    def tell(self, **ends: int) -> None:
        question = self.questions[-1]
        for name, end in ends.items():
            number = int(name.removeprefix("p"))
            question.told[number] = end
            del question.why[number]
        if not question.why:
            question.over.set()


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    return Answers(monkeypatch)


def test_an_end_counts_from_before_it_was_asked_for(answers: Answers) -> None:
    assert answers.turn() == []
    answers.tell(p0=5, p1=9)
    assert answers.turn(0.5) == [(0, 1_000_000, 5)]
    answers.at[1] = 11
    assert answers.turn(30) == [(1, 1_000_000, 11)]


def test_a_partition_that_is_told_does_not_wait_for_another_one(answers: Answers) -> None:
    answers.turn()
    answers.tell(p0=5)
    assert answers.turn(0.2) == [(0, 1_000_000, 5)]
    assert answers.turn(2) == []
    assert len(answers.questions) == 1
    answers.turn(5)  # long enough: what is missing is asked for anew, and what has been read since
    answers.turn()
    assert len(answers.questions) == 2
    assert sorted(answers.questions[-1].why) == [0, 1]


def test_an_answer_to_what_was_asked_before_an_assignment_is_not_taken(answers: Answers) -> None:
    """The worker may begin further back than where the partition was taken up."""
    answers.turn()
    answers.idle.forget(0)
    answers.tell(p0=5, p1=5)
    assert answers.turn() == [(1, 1_000_000, 5)]
    answers.turn(2)
    answers.idle.forget()
    answers.tell(p0=5, p1=5)
    assert answers.turn() == []


def test_where_log_ends_are_not_told_no_time_is_known(answers: Answers) -> None:
    answers.turn()
    answers.questions[-1].refused.add(0)
    answers.questions[-1].over.set()
    assert answers.turn() == [(0, NO_TIME, 5)]


def test_an_end_before_what_was_read_is_none(answers: Answers) -> None:
    answers.turn()
    answers.tell(p0=4, p1=5)
    assert answers.turn() == [(0, NO_TIME, 5), (1, 1_000_000, 5)]


def test_the_log_says_once_that_an_end_is_not_known(answers: Answers, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(30):
        answers.turn(5)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == 2
    assert "partition 1: its log end cannot be found out (no answer yet)" in said[1]
    answers.tell(p0=5, p1=5)
    answers.turn()
    for _ in range(30):
        answers.turn(5)
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 4


# Readers that need all that was committed


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    cluster = FakeCluster()
    run_on(cluster, monkeypatch)
    cluster.create("t", 1)
    cluster.log(("t", 0)).append([(b"w/0", b'[1,3,"","first"]', 1)])
    cluster.log(("t", 0)).hold(cluster.monotonic_s() + 9)
    cluster.log(("t", 0)).append([(b"w/0", b'[1,7,"","second"]', 2)])
    return cluster


def values(log: TopicLog, patience_s: float) -> list[bytes]:
    return [stored.value for stored in log.read("t", patience_s=patience_s)]


def test_all_that_was_appended_is_waited_for_where_the_reader_has_patience(cluster: FakeCluster) -> None:
    log = TopicLog(FakeConnection(("model",), cluster=cluster))
    assert len(values(log, 0)) == 1
    with pytest.raises(BrokerAway):
        values(log, 3)
    assert len(values(log, 20)) == 2


def test_a_position_above_the_high_watermark_is_not_passed_over(cluster: FakeCluster) -> None:
    ledger = Ledger(TopicLog(FakeConnection(("model",), cluster=cluster)), "t")
    with pytest.raises(BrokerAway):
        ledger.entries(0, 1)
    assert ledger.entries(0, 20)["w"].commit.offset == 7


def test_a_first_start_waits_for_releases_that_are_not_readable_yet(cluster: FakeCluster) -> None:
    """One that is still undecided would be drawn again, if its transaction is committed after all."""
    names = Names("p", 1, "t")
    for topic in (names.outbox, names.sketches):
        cluster.create(topic, 1)
    log = TopicLog(FakeConnection(("model",), cluster=cluster))
    _require_unreleased(log, names, [0], 0)
    cluster.log((names.outbox, 0)).hold(cluster.monotonic_s() + 9)
    cluster.log((names.outbox, 0)).append([(b"k", release(0, window_ms=60_000, pipeline="p"), 1)])
    with pytest.raises(StateError, match="holds releases of epoch 1"):
        _require_unreleased(log, names, [0], 0)


def test_a_ledger_whose_end_is_not_known_says_nothing(cluster: FakeCluster) -> None:
    class Away(Host):
        def call(self, name: str, effect: Callable[[], Any]) -> Any:
            if name == "log end":
                raise kafka_errors.KafkaConnectionError
            return super().call(name, effect)

    ledger = Ledger(TopicLog(FakeConnection(("model",), cluster=cluster, host=Away(cluster))), "t")
    assert ledger.ends([0]) == {}
    with pytest.raises(BrokerAway, match="where it ends"):
        ledger.entries(0, 0.5)


def test_log_ends_are_asked_for_again_while_there_is_patience(cluster: FakeCluster) -> None:
    class LateAnswers(Host):
        asked = 0

        def call(self, name: str, effect: Callable[[], Any]) -> Any:
            if name == "log end":
                self.asked += 1
                if self.asked < 3:
                    raise kafka_errors.KafkaConnectionError
            return super().call(name, effect)

    host = LateAnswers(cluster)
    ledger = Ledger(TopicLog(FakeConnection(("model",), cluster=cluster, host=host)), "t")
    assert ledger.ends([0]) == {}
    assert ledger.ends([0], 20) == {0: 2}
