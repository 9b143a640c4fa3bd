"""What a backend of the Transport contract has to offer, and the embedded ones.

A further transport joins by implementing Backend and being added to BACKENDS.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sfm_stream.transport.base import TopicReader, Transport
from sfm_stream.transport.embedded import EmbeddedTransport, TopicInput
from sfm_stream.transport.lines import LineInput
from sfm_stream.transport.sqlite import SqliteLog
from sfm_stream.types import Assigned, InputEnd, Record, Revoked, Step

PATIENCE_S = 30.0
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
    deadline = time.monotonic() + PATIENCE_S
    while not done(seen):
        assert time.monotonic() < deadline, f"nothing more came; so far {seen.kinds}"
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


class _Owning(EmbeddedTransport):
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
        reader = SqliteLog.open_reader(self.log_path)
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


BACKENDS: dict[str, Callable[[Path], Backend]] = {
    "embedded-lines": lambda folder: EmbeddedBackend(folder, topic=False),
    "embedded-topic": lambda folder: EmbeddedBackend(folder, topic=True),
}
