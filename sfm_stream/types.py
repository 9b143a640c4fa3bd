"""The frozen values that travel between the steps, in the order of the data path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

KeyPart: TypeAlias = str | int | bytes
"""One field of a counting key."""
KeyValue: TypeAlias = KeyPart | tuple[KeyPart, ...]
"""A counting key as it is interned: the bare value of a single field, else a tuple (empty: one count for all)."""

NO_TIME = -1
"""A record without a usable time."""


class Reason(IntEnum):
    """Why a record is not counted; 0 is counted. The first reason that applies, in this order, is the one given."""

    OK = 0
    TOMBSTONE = 1
    RECORD_TOO_LONG = 2
    FRAMED = 3
    NOT_UTF8 = 4
    MALFORMED = 5
    DUPLICATE_FIELD = 6
    TIME_MISSING = 10
    TIME_TYPE = 11
    TIME_UNREADABLE = 12
    TIME_NAIVE = 13
    TIME_LOOKS_LIKE_SECONDS = 14
    TIME_LOOKS_LIKE_MILLISECONDS = 15
    TIME_LOOKS_LIKE_MICROSECONDS = 16
    TIME_LOOKS_LIKE_NANOSECONDS = 17
    TIME_IMPLAUSIBLE = 18
    KEY_MISSING = 20
    KEY_TYPE = 21
    KEY_RANGE = 22
    KEY_TOO_LONG = 23
    KEY_NOT_DECLARED = 24
    KEY_MISPLACED = 25
    KEY_NOT_UNICODE = 26
    ITEM_MISSING = 30
    ITEM_TYPE = 31
    ITEM_RANGE = 32
    ITEM_NOT_FINITE = 33
    ITEM_NOT_UNICODE = 34
    FUTURE = 40
    BEFORE_START = 41
    AFTER_EPOCH = 42
    LATE = 43
    AFTER_END = 44


class RecordBatch(Protocol):
    """Records of one partition in ascending offsets, as a transport can give them at least cost."""

    @property
    def partition(self) -> int: ...
    @property
    def first(self) -> int:
        """Offset of the first record, or of the first byte not yet read."""
        ...

    @property
    def next_offset(self) -> int:
        """Where reading goes on after this batch; it may pass over control, aborted and compacted records."""
        ...

    @property
    def count(self) -> int: ...
    def offsets(self) -> NDArray[np.int64]: ...
    def arrivals(self) -> NDArray[np.int64] | None:
        """Shape (count,): record timestamps in ms, NO_TIME where there is none; None where arrival is event time."""
        ...

    def keys(self) -> list[bytes | None]: ...
    def values(self) -> list[bytes | None]: ...


@dataclass(frozen=True, slots=True)
class EventColumns:
    """One row for each record of a batch; nothing is dropped here.

    offsets, arrival_ms, event_ms: int64 (times NO_TIME where unknown). key_ids: int32, -1 none. cells: uint32.
    reasons: uint8, a Reason. next_offset: as in the batch. new_keys: ids first seen in this batch.
    """

    partition: int
    next_offset: int
    offsets: NDArray[np.int64]
    arrival_ms: NDArray[np.int64]
    event_ms: NDArray[np.int64]
    key_ids: NDArray[np.int32]
    cells: NDArray[np.uint32]
    reasons: NDArray[np.uint8]
    new_keys: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Dropped:
    """Records of one batch that are not counted: how many for each reason, and pointers to them (never content).

    released: how many others were counted by an earlier run, which has released their windows.
    """

    partition: int
    counts: Mapping[Reason, int]
    offsets: NDArray[np.int64]
    reasons: NDArray[np.uint8]
    released: int = 0


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """[start_ms, end_ms), milliseconds since 1970 UTC."""

    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Record:
    """A record to publish. topic: SKETCHES, ROLLUPS or DEAD_LETTERS; a transport maps it to a real name."""

    topic: str
    partition: int
    key: bytes
    value: bytes
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class SpanProgress:
    """How far the windows of one released span are decided.

    Every window that ends at or before closed_through_ms is decided for ever and has its close marker. In the window
    that starts there, keys (canonical bytes) up to `cursor` are decided too.
    """

    size_ms: int
    closed_through_ms: int
    cursor: bytes | None = None

    @property
    def drawn_through_ms(self) -> int:
        """End of the last window in which anything is decided: with a cursor, one that is not closed yet."""
        return self.closed_through_ms if self.cursor is None else self.closed_through_ms + self.size_ms


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What is committed with every step: all that a successor needs to go on. OPERATOR DOMAIN.

    Replay starts at `offset`; `clock_ms` is the largest arrival time before it, `declared` a digest of the partition's
    declared keys that took effect in windows decided so far, in whole or in part; "" before the first of them, and in
    other modes. `mark` is what the input calls itself up to where it was read, "" where it needs no such name.
    """

    fingerprint: str
    partitions: int
    source: str
    start_ms: int
    latest_ms: int
    spans: tuple[SpanProgress, ...]
    clock_ms: int
    offset: int
    declared: str = ""
    mark: str = ""

    @property
    def span(self) -> SpanProgress:
        """The one span that is released. Raises ValueError where there are several."""
        (span,) = self.spans
        return span

    @property
    def closed_through_ms(self) -> int:
        """Every window that ends at or before this is decided for ever."""
        return min(span.closed_through_ms for span in self.spans)

    @property
    def drawn_through_ms(self) -> int:
        """Nothing is decided in any window that starts at or after this."""
        return max(span.drawn_through_ms for span in self.spans)


@dataclass(frozen=True, slots=True)
class Commit:
    """The position that goes into the same transaction as the records: where replay starts, and opaque metadata."""

    partition: int
    offset: int
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction: records to publish and positions to commit. Performed whole or not at all."""

    publish: tuple[Record, ...] = ()
    commit: tuple[Commit, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A committed record of a topic, as any reader sees it."""

    offset: int
    partition: int
    key: bytes
    value: bytes
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Assigned:
    """The transport now owns a partition; `committed` is its last committed position, if any."""

    partition: int
    committed: Commit | None = field(default=None)


@dataclass(frozen=True, slots=True)
class Revoked:
    """The transport lost a partition: its open windows must be dropped, nothing partial published."""

    partition: int


@dataclass(frozen=True, slots=True)
class InputEnd:
    """Nothing more to read now. complete: the input was declared complete, and this is its end for ever.

    asked_ms: all that was in the partition at this time of the wall clock has been read; NO_TIME where that is unknown.
    next_offset: where reading goes on, which may lie past offsets that hold no record; None where none do.
    """

    partition: int
    complete: bool
    asked_ms: int = NO_TIME
    next_offset: int | None = None
