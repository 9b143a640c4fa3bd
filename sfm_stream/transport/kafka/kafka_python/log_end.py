"""The log ends of partitions: behind all that was appended when they were asked for, readable yet or not.

A leader appends a record, and may stamp it with its arrival, before the other replicas have it. Readers are given it
when all in sync do: up to the high watermark. While a replica is away and still counts as in sync, the high watermark
stands and says nothing about what was appended. The log end is what ListOffsets answers to the protocol's debugging
replica.

It matters who answers. Followers answer the debugging replica too, and a broker that stood still may take itself for
the leader and know nothing of what its successor has acknowledged. So each replica in sync is asked, in the leader's
epoch: a later leader is one of them, and refuses an epoch that is over before it has acknowledged anything in its own.
An end is told when all have answered in that epoch. docs/decisions/0022.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Event
from typing import Any

import kafka.errors as kafka_errors
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.protocol.consumer import ListOffsetsRequest, OffsetSpec

_DEBUGGING_REPLICA = -2
_WITH_EPOCHS = 4
"""The version of the request since which it carries the leader's epoch."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Who leads a partition, in which epoch, and who has to answer."""

    leader: int
    epoch: int
    in_sync: frozenset[int]


class Question:
    """Log ends of some partitions of a topic, on their way. Filled by another thread, and read while it is.

    told: partition to its log end, at a time after the question was asked. refused: partitions of which a broker does
    not tell it to anyone, now or later. why: what is missing of each of the others. over: nothing more will come.
    """

    def __init__(self, topic: str, partitions: Iterable[int]) -> None:
        self.topic = topic
        self.told: dict[int, int] = {}
        self.refused: set[int] = set()
        self.why: dict[int, str] = dict.fromkeys(partitions, "no answer yet")
        self.over = Event()
        self._places: dict[int, _Place] = {}
        self._ends: dict[int, dict[int, int]] = defaultdict(dict)

    def seek(self, metadata: Any) -> dict[int, dict[int, int]]:
        """Broker to the partitions that it is to be asked for, each with the epoch of its leader."""
        wanted: dict[int, dict[int, int]] = defaultdict(dict)
        for found in metadata["partitions"]:
            number, leader, in_sync = found["partition_index"], found["leader_id"], frozenset(found["isr_nodes"])
            if number not in self.why:
                continue
            if leader not in in_sync or found["leader_epoch"] < 0:
                self.why[number] = "it has no leader"
                continue
            self._places[number] = _Place(leader, found["leader_epoch"], in_sync)
            for broker in in_sync:
                wanted[broker][number] = found["leader_epoch"]
        return wanted

    def take(self, broker: int, number: int, code: int, offset: int) -> None:
        """What a broker answered."""
        place, error = self._places[number], kafka_errors.for_code(code)
        if error is not kafka_errors.NoError:
            # To the debugging replica every replica answers: who sends us to the leader does not know of it.
            follower = error is kafka_errors.NotLeaderForPartitionError and broker != place.leader
            self.fail(broker, [number], error(), final=follower)
            return
        answers = self._ends[number]
        answers[broker] = offset
        if answers.keys() == place.in_sync and number not in self.refused:
            del self.why[number]
            self.told[number] = answers[place.leader]

    def fail(self, broker: int | None, numbers: Iterable[int], error: BaseException, final: bool = False) -> None:
        final = final or isinstance(error, kafka_errors.UnsupportedVersionError | kafka_errors.InvalidRequestError)
        for number in numbers:
            asked = "the cluster" if broker is None else f"broker {broker}"
            self.why[number] = f"{asked} says {type(error).__name__}"
            if final:
                self.refused.add(number)


class LogEndAdmin(KafkaAdminClient):  # type: ignore[misc]  # kafka-python has no types
    """Asks for log ends too."""

    def ask_log_ends(self, topic: str, partitions: Iterable[int]) -> Question:
        """Waits for nothing, and raises nothing: what cannot be found out is not told."""
        question = Question(topic, partitions)
        self._manager.call_soon(self._answer, question)
        return question

    async def _answer(self, question: Question) -> None:
        try:
            [metadata] = (await self._get_cluster_metadata([question.topic]))["topics"]
            wanted = question.seek(metadata)
            for answer in [self._manager.call_soon(self._ask, question, *each) for each in wanted.items()]:
                await answer
        except (KafkaError, OSError) as error:
            question.fail(None, list(question.why), error)
        finally:
            question.over.set()

    async def _ask(self, question: Question, broker: int, epochs: dict[int, int]) -> None:
        try:
            response = await self._manager.send(_request(question.topic, epochs), node_id=broker)
        except (KafkaError, OSError) as error:
            if isinstance(error, kafka_errors.UnknownBrokerIdError):  # one that came back; else known in five minutes
                self._manager.cluster.request_update()
            question.fail(broker, epochs, error)
            return
        for topic in response.topics:
            for found in topic.partitions:
                question.take(broker, found.partition_index, found.error_code, found.offset)


def _request(topic: str, epochs: dict[int, int]) -> Any:
    part = ListOffsetsRequest.ListOffsetsTopic
    asked = [
        part.ListOffsetsPartition(partition_index=number, current_leader_epoch=epoch, timestamp=OffsetSpec.LATEST)
        for number, epoch in epochs.items()
    ]
    return ListOffsetsRequest(
        replica_id=_DEBUGGING_REPLICA,
        isolation_level=0,
        topics=[part(name=topic, partitions=asked)],
        min_version=_WITH_EPOCHS,
    )
