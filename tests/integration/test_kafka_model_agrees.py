"""The model of Kafka and a real broker under the same scripts: what fails, and what can be read, must agree.

Errors may be of other classes; a real broker may take a moment to write the markers of a transaction.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from kafka import KafkaConsumer
from kafka import TopicPartition as Place
from support.fake_kafka import FakeCluster
from support.kafka_topics import KEPT, topic_name
from support.patience import PATIENCE_S, patiently, until

from sfm_stream.errors import BrokerError
from sfm_stream.transport.kafka.cluster import Cluster, Producer
from sfm_stream.transport.kafka.cluster_values import GroupOffset, TopicPartition
from sfm_stream.transport.kafka.kafka_python import readers
from sfm_stream.transport.kafka.kafka_python.client import KafkaPythonCluster
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.transport.kafka.topics import create_plain
from sfm_stream.transport.kafka.transactions import _watched
from sfm_stream.types import Record

SCRIPTS, STEPS, PARTITIONS = 24, 14, 2
Step = tuple[Any, ...]


@dataclass
class Side:
    """A cluster, a member of a group on it, and the producers of one script."""

    cluster: Cluster
    uncommitted: Callable[[str, int], list[bytes | None]]
    prefix: str = field(default_factory=topic_name)
    topic: str = ""
    number: int = 0
    """Of the script: its topic, and the partition that its offsets are of."""
    producers: dict[int, Producer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.log = TopicLog(self.cluster)
        self.make(self.prefix, SCRIPTS)
        self.member = self.cluster.group_reader(f"{self.prefix}.group", self.prefix)
        for _ in patiently(lambda: "the group does not get together"):
            if self.member.membership().settled:
                break
            self.member.poll(100, 1)

    def make(self, name: str, partitions: int = PARTITIONS) -> None:
        create_plain(self.cluster, name, partitions, 1, KEPT)

    def begin(self, number: int) -> None:
        self.number, self.topic = number, f"{self.prefix}.{number}"
        self.make(self.topic)

    def end(self) -> None:
        for sender in self.producers.values():
            sender.discard()
        self.producers = {}

    def close(self) -> None:
        self.end()
        self.member.close()
        self.log.close()

    def do(self, step: Step) -> bool:
        """Whether a call succeeds."""
        try:
            _watched(lambda: self._call(*step), PATIENCE_S)
        except TimeoutError:
            raise
        except (BrokerError, AssertionError, ValueError):
            return False
        return True

    def ends(self) -> dict[str, Any]:
        found = {str(stable): self.log.ends(self.topic, range(PARTITIONS), stable=stable) for stable in (True, False)}
        return found | {"log": self.log.log_ends(self.topic, range(PARTITIONS))}

    def sees(self) -> dict[str, Any]:
        numbers = range(PARTITIONS)
        with suppress(BrokerError):
            offset = self.member.committed(self.number)
            return {
                "committed": [
                    (r.partition, r.offset, r.key, r.value, r.timestamp_ms) for r in self.log.read(self.topic)
                ],
                "uncommitted": [self.uncommitted(self.topic, number) for number in numbers],
                "group": offset,
            }
        return {"group": "undecided"}

    def _call(self, name: str, who: int, *rest: Any) -> None:
        if name == "open":
            sender = self.producers[who] = self.cluster.producer(f"{self.topic}.{rest[0]}")
            sender.init_transactions()
            return
        sender = self.producers[who]
        if name == "begin":
            sender.begin()
        elif name == "write":
            partition, values = rest
            for value in values:
                sender.send(Record(self.topic, partition, b"k", value, 1_000))
            sender.flush()
        elif name == "offsets":
            at, kind = rest
            membership = self.member.membership()
            if kind == "stale":
                membership = replace(membership, generation=membership.generation + 7)
            elif kind == "stranger":
                membership = replace(membership, member="nobody")
            sender.send_offsets({TopicPartition(self.prefix, self.number): GroupOffset(at, f"by {who}")}, membership)
        elif name == "commit":
            sender.commit()
        elif name == "abort":
            sender.abort()


def script(seed: int) -> list[Step]:
    """Two or three producers, two of which may have the same id: most calls in an order that makes sense."""
    rng = random.Random(seed)
    steps: list[Step] = []
    ids = {0: "a", 1: rng.choice(("a", "b")), 2: "b"}
    opened: set[int] = set()
    for number in range(STEPS):
        who = rng.choice(sorted(opened)) if opened and rng.random() < 0.8 else rng.randrange(3)
        if who not in opened:
            opened.add(who)
            steps += [("open", who, ids[who]), ("begin", who)]
            continue
        name = rng.choices(("write", "offsets", "commit", "abort", "begin", "open"), (6, 3, 3, 2, 2, 1))[0]
        if name == "write":
            values = tuple(b"%d.%d" % (number, n) for n in range(rng.randrange(1, 4)))
            steps.append((name, who, rng.randrange(PARTITIONS), values))
        elif name == "offsets":
            steps.append((name, who, number, rng.choices(("current", "stale", "stranger"), (4, 1, 1))[0]))
        elif name == "open":
            steps += [("open", who, ids[who]), ("begin", who)]
        else:
            steps.append((name, who))
            if name in ("commit", "abort") and rng.random() < 0.7:
                steps.append(("begin", who))
    return steps


@pytest.fixture(scope="module")
def sides(kafka: str) -> Iterator[tuple[Side, Side]]:
    modelled = FakeCluster()

    def of_the_model(topic: str, partition: int) -> list[bytes | None]:
        return [entry.value for entry in modelled.broker.log((topic, partition)).values(committed=False)]

    reader = KafkaConsumer(bootstrap_servers=kafka, enable_auto_commit=False, auto_offset_reset="earliest")

    def of_the_broker(topic: str, partition: int) -> list[bytes | None]:
        place = Place(topic, partition)
        reader.assign([place])
        reader.seek(place, 0)
        found, end = [], reader.end_offsets([place])[place]
        while reader.position(place) < end:
            found += [record.value for record in reader.poll(timeout_ms=100).get(place, [])]
        return found

    both = (Side(modelled, of_the_model), Side(KafkaPythonCluster((kafka,)), of_the_broker))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "_COMMITTED_MS", 500)
        yield both
    for side in both:
        side.close()
    reader.close()


@pytest.mark.parametrize("seed", range(SCRIPTS))
def test_scripts_end_alike(sides: tuple[Side, Side], seed: int) -> None:
    for side in sides:
        side.begin(seed)
    done: list[tuple[Step, bool]] = []
    for step in script(seed):
        model, broker = (side.do(step) for side in sides)
        done.append((step, model))
        assert broker == model, f"the broker says {broker} after {done}"
        if step[0] in ("commit", "abort", "open"):
            require_same(sides, Side.ends, done)
    require_same(sides, Side.ends, done)
    require_same(sides, Side.sees, done)
    for side in sides:
        side.end()


def require_same(sides: tuple[Side, Side], look: Callable[[Side], Any], done: list[tuple[Step, bool]]) -> None:
    expected = look(sides[0])
    until(lambda: look(sides[1]) == expected, lambda: (look(sides[1]), expected, done), 0.02)
