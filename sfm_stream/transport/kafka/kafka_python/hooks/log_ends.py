"""The log ends of partitions: behind all that was appended when they were asked for, readable yet or not.

A leader appends a record, and may stamp it with its arrival, before the other replicas have it. A reader is given it
when every replica in sync has it: up to the high watermark. While a replica is away and still counts as in sync, the
high watermark stands still and says nothing about what was appended. The log end is what ListOffsets answers to the
protocol's debugging replica.

It matters who answers. Followers answer the debugging replica too. A broker that stood still may take itself for the
leader and know nothing of what its successor has acknowledged. So each replica in sync is asked, in the leader's epoch:
a later leader is one of them, and refuses an epoch that is over before it has acknowledged anything in its own. An end
is told when all have answered in that epoch. docs/decisions/0022.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import kafka.errors as kafka_errors
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.protocol.consumer import ListOffsetsRequest, OffsetSpec

from sfm_stream.transport.kafka.cluster_values import LogEndQuery
from sfm_stream.transport.kafka.kafka_python.hooks.private_names import PrivateNames

_DEBUGGING_REPLICA = -2
_WITH_EPOCHS = 4
"""The version of the request since which it carries the leader's epoch."""


RELIES_ON: PrivateNames = {
    "kafka.admin.client:KafkaAdminClient": {
        "_manager": "what sends requests to a broker of our choice",
        "_get_cluster_metadata(self, topics)": "it gives leader, epoch and replicas in sync of each partition",
    },
    "kafka.net.manager:KafkaConnectionManager": {
        "call_soon(self, coro, *args)": "it runs a coroutine on the thread of the client, and returns a future at once",
        "send(self, request, node_id=None, request_timeout_ms=None)": "it can be awaited on that thread",
    },
}


@dataclass(frozen=True, slots=True)
class _Leadership:
    """Who leads a partition, in which epoch, and which replicas have to answer."""

    leader: int
    epoch: int
    in_sync: frozenset[int]


class ReplicaAnswers(LogEndQuery):
    """A query that collects what each replica answers, and tells an end once all in sync have."""

    def __init__(self, partitions: Iterable[int]) -> None:
        super().__init__(partitions)
        self._leaderships: dict[int, _Leadership] = {}
        self._ends: dict[int, dict[int, int]] = defaultdict(dict)

    def to_ask(self, metadata: Any) -> dict[int, dict[int, int]]:
        """Broker to the partitions that it is to be asked for, each with the epoch of its leader."""
        wanted: dict[int, dict[int, int]] = defaultdict(dict)
        for partition in metadata["partitions"]:
            number, epoch = partition["partition_index"], partition["leader_epoch"]
            leader, in_sync = partition["leader_id"], frozenset(partition["isr_nodes"])
            if number not in self.why:
                continue
            if leader not in in_sync or epoch < 0:
                self.why[number] = "it has no leader"
                continue
            self._leaderships[number] = _Leadership(leader, epoch, in_sync)
            for broker in in_sync:
                wanted[broker][number] = epoch
        return wanted

    def take(self, broker: int, number: int, code: int, offset: int) -> None:
        """What a broker answered for a partition."""
        leadership, error = self._leaderships[number], kafka_errors.for_code(code)
        if error is not kafka_errors.NoError:
            # Every replica answers the debugging replica: one that sends us to the leader does not know of it.
            follower = error is kafka_errors.NotLeaderForPartitionError and broker != leadership.leader
            self.fail(broker, [number], error(), final=follower)
            return
        answers = self._ends[number]
        answers[broker] = offset
        if answers.keys() == leadership.in_sync and number not in self.refused:
            del self.why[number]
            self.told[number] = answers[leadership.leader]

    def fail(self, broker: int | None, numbers: Iterable[int], error: BaseException, final: bool = False) -> None:
        """Partitions of which the broker (None: nobody) gave no end. final: it never will."""
        final = final or isinstance(error, kafka_errors.UnsupportedVersionError | kafka_errors.InvalidRequestError)
        for number in numbers:
            asked = "the cluster" if broker is None else f"broker {broker}"
            self.why[number] = f"{asked} says {type(error).__name__}"
            if final:
                self.refused.add(number)


class LogEndAdmin(KafkaAdminClient):  # type: ignore[misc]  # kafka-python has no types
    """The admin client, which asks for log ends too."""

    def ask_log_ends(self, topic: str, partitions: Iterable[int]) -> ReplicaAnswers:
        """Waits for nothing, and raises nothing: what cannot be found out is not told."""
        answers = ReplicaAnswers(partitions)
        self._manager.call_soon(self._ask_all, topic, answers)
        return answers

    async def _ask_all(self, topic: str, answers: ReplicaAnswers) -> None:
        try:
            [metadata] = (await self._get_cluster_metadata([topic]))["topics"]
            to_ask = answers.to_ask(metadata)
            for asked in [self._manager.call_soon(self._ask, topic, answers, *each) for each in to_ask.items()]:
                await asked
        except (KafkaError, OSError) as error:
            answers.fail(None, list(answers.why), error)
        finally:
            answers.over.set()

    async def _ask(self, topic: str, answers: ReplicaAnswers, broker: int, epochs: dict[int, int]) -> None:
        try:
            response = await self._manager.send(_request(topic, epochs), node_id=broker)
        except (KafkaError, OSError) as error:
            answers.fail(broker, epochs, error)
            return
        for part in response.topics:
            for answer in part.partitions:
                answers.take(broker, answer.partition_index, answer.error_code, answer.offset)


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
