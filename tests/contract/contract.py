"""What a backend of the Transport contract has to offer, and the embedded ones.

A further transport joins by implementing Backend and being added to BACKENDS.
"""

from __future__ import annotations

import contextlib
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaError
from support.fake_kafka import FakeCluster, run_on
from support.fake_kafka_broker import FakeBroker
from support.kafka_topics import KEPT
from support.patience import patiently, until

from sfm_stream.transport.contract import TopicReader, Transport
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.transport.files.log_reader import LogReader
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.transport.files.topic_input import TopicInput
from sfm_stream.transport.files.transport import FileTransport
from sfm_stream.transport.kafka.cluster import Cluster
from sfm_stream.transport.kafka.endpoints import Endpoints
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.transport.kafka.topics import create_plain
from sfm_stream.transport.kafka.transport import KafkaTransport
from sfm_stream.types import Assigned, InputEnd, Record, Revoked, Step
from sfm_stream.units import ROLLUPS, SKETCHES

INPUT = "input"


class Backend(Protocol):
    """One input of partition 0, one output, one worker. A transport is closed before the next is opened."""

    def load(self, values: Sequence[bytes]) -> None:
        """Append records to the input; values are neither empty nor hold newlines."""
        ...

    def open(self) -> Transport: ...

    def reader(self) -> contextlib.AbstractContextManager[TopicReader]:
        """A reader as the public has it: on its own connection."""
        ...

    def commits_fail(self) -> contextlib.AbstractContextManager[None]:
        """Within it, a commit fails after its records were written and before its positions are."""
        ...


@dataclass
class Seen:
    """What polling brought: Assigned and InputEnd events, and records as (offset, value)."""

    assigned: list[Assigned] = field(default_factory=list)
    ends: list[InputEnd] = field(default_factory=list)
    records: list[tuple[int, bytes | None]] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)


def poll_until(transport: Transport, done: Callable[[Seen], bool]) -> Seen:
    """Poll until `done`, checking what holds for every batch."""
    seen = Seen()
    for _ in patiently(lambda: f"nothing more came; so far {seen.kinds}"):
        if done(seen):
            break
        for event in transport.poll():
            seen.kinds.append(type(event).__name__)
            if isinstance(event, Assigned):
                seen.assigned.append(event)
            elif isinstance(event, InputEnd):
                seen.ends.append(event)
            elif not isinstance(event, Revoked):
                offsets = event.offsets().tolist()
                arrivals = event.arrivals()
                assert event.count == len(offsets) == len(event.values()) == len(event.keys())
                assert arrivals is None or arrivals.shape == (event.count,)
                assert all(event.first <= offset < event.next_offset for offset in offsets)
                seen.spans.append((event.first, event.next_offset))
                seen.records.extend(zip(offsets, event.values(), strict=True))
    return seen


def read_to_end(transport: Transport) -> Seen:
    return poll_until(transport, lambda seen: bool(seen.ends))


def assign(transport: Transport) -> Assigned:
    return poll_until(transport, lambda seen: bool(seen.assigned)).assigned[0]


class _Owning(FileTransport):
    """Closes its log too, as a worker alone in its process does."""

    def close(self) -> None:
        super().close()
        self._log.close()


@dataclass
class EmbeddedBackend:
    """Over a SQLite log; with lines of a file, or with a topic of the log as input."""

    folder: Path
    topic: bool

    @property
    def log_path(self) -> str:
        return str(self.folder / "published.sqlite")

    def load(self, values: Sequence[bytes]) -> None:
        if self.topic:
            log = SqliteLog(self.log_path)
            log.append("loader", Step(tuple(Record(INPUT, 0, b"k", value, 1_000) for value in values)))
            log.close()
        else:
            with (self.folder / "input.jsonl").open("ab") as file:
                file.write(b"".join(value + b"\n" for value in values))

    def open(self) -> Transport:
        log = SqliteLog(self.log_path)
        if self.topic:
            return _Owning(TopicInput(log, INPUT, batch_records=3), log, "worker")
        (self.folder / "input.jsonl").touch()
        lines = LineInput(str(self.folder / "input.jsonl"), complete=False, chunk_bytes=16)
        return _Owning(lines, log, "worker")

    @contextlib.contextmanager
    def reader(self) -> Iterator[TopicReader]:
        reader = LogReader(self.log_path)
        yield reader
        reader.close()

    @contextlib.contextmanager
    def commits_fail(self) -> Iterator[None]:
        trigger = "CREATE TRIGGER broken BEFORE INSERT ON positions BEGIN SELECT RAISE(FAIL, 'simulated'); END"
        self._execute(trigger)
        yield
        self._execute("DROP TRIGGER broken")

    def _execute(self, statement: str) -> None:
        db = sqlite3.connect(self.log_path, isolation_level=None)
        db.execute(statement)
        db.close()


@dataclass
class KafkaBackend:
    """Over a cluster, real or modelled, with topics of its own. sends_offsets: what fails where commits fail."""

    cluster: Cluster
    sends_offsets: tuple[type, str] = (KafkaProducer, "send_offsets_to_transaction")

    def __post_init__(self) -> None:
        self.names = kafka_names("contract")
        names = self.names
        partitions = dict.fromkeys(names.topics.values(), 2) | {names.source: 1, names.ledger: 1}
        for topic, count in partitions.items():
            create_plain(self.cluster, topic, count, 1, KEPT)

    def load(self, values: Sequence[bytes]) -> None:
        producer = self.cluster.producer(f"{self.names.source}.loader")
        producer.init_transactions()
        producer.begin()
        for at, value in enumerate(values):
            producer.send(Record(self.names.source, 0, b"k", value, 1_000))
            if at % 7 == 6:
                producer.flush()
        producer.commit()
        producer.discard()

    def open(self) -> Transport:
        return _OwningKafka(self.cluster, self.names, TopicLog(self.cluster))

    @contextlib.contextmanager
    def reader(self) -> Iterator[TopicReader]:
        reader = TopicLog(self.cluster, self.names.topics)
        # The broker answers a commit before its markers are in every partition; they are a moment later.
        for topic in self.names.topics.values():
            until(
                lambda: reader.ends(topic, [0, 1], stable=True) == reader.ends(topic, [0, 1], stable=False),
                lambda: "a transaction stays open",
            )
        yield reader
        reader.close()

    @contextlib.contextmanager
    def commits_fail(self) -> Iterator[None]:
        def refuse(*_: object) -> None:
            raise KafkaError("simulated")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(*self.sends_offsets, refuse)
            yield


class _OwningKafka(KafkaTransport):
    def close(self) -> None:
        super().close()
        self._log.close()


def kafka_names(stem: str) -> Endpoints:
    """Names that no other test uses."""
    own = f"{stem}-{uuid.uuid4().hex[:12]}"
    topics = {SKETCHES: f"{own}.sketches", ROLLUPS: f"{own}.rollups"}
    return Endpoints(f"{own}.input", f"{own}.group", "worker/1", f"{own}.ledger", topics)


def kafka_model(patch: pytest.MonkeyPatch) -> Backend:
    broker = FakeBroker()
    run_on(broker, patch)
    return KafkaBackend(FakeCluster(broker=broker), (FakeBroker, "commit_offsets"))


BACKENDS: dict[str, Callable[[Path, pytest.MonkeyPatch], Backend]] = {
    "embedded-lines": lambda folder, _: EmbeddedBackend(folder, topic=False),
    "embedded-topic": lambda folder, _: EmbeddedBackend(folder, topic=True),
    "kafka-model": lambda _, patch: kafka_model(patch),
}
