"""The values that the steps hand to each other, all frozen, in the order of the data path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfm_stream.units import CALENDAR_UNITS

KeyPart: TypeAlias = str | int | bytes
"""One field of a counting key."""
KeyValue: TypeAlias = KeyPart | tuple[KeyPart, ...]
"""A counting key as a KeyTable holds it: the bare value of a single field, else a tuple (empty: one count for all)."""

NO_TIME = -1
"""Stands for the time of a record that has no usable one."""


class Reason(IntEnum):
    """Why a record is not counted; OK: it is. Of several reasons that apply the first in this order is given."""

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
    """Records of one partition, in ascending order of offset. Columns are made when they are asked for."""

    @property
    def partition(self) -> int: ...
    @property
    def first(self) -> int:
        """Offset of the first record, or of the first byte not yet read."""
        ...

    @property
    def next_offset(self) -> int:
        """The offset at which reading goes on. Between it and the last record may be offsets without a record to count:
        of control records, aborted ones and compacted ones.
        """
        ...

    @property
    def count(self) -> int: ...
    def offsets(self) -> NDArray[np.int64]: ...
    def arrivals(self) -> NDArray[np.int64] | None:
        """Shape (count,): record timestamps in ms, NO_TIME where there is none; None where arrival is event time."""
        ...

    def keys(self) -> list[bytes | None]: ...
    def values(self) -> Sequence[bytes | None]: ...


class WireBatch(RecordBatch, Protocol):
    """A RecordBatch of batches of Kafka's message format 2, which has their bytes until columns are made of them."""

    @property
    def raws(self) -> list[bytes]:
        """The batches as they were stored, each with its header, in order of offset: in each text one or several, one
        behind the other. One empty text where columns have been made of them, or where the log holds an older format.
        Records before `first` are to be left out, of which there are none but in the first batch.
        """
        ...

    @property
    def batches(self) -> int:
        """How many batches of the log it holds."""
        ...


class LineTexts(RecordBatch, Protocol):
    """A RecordBatch that is a stretch of lines, as transport/files/line_batch.py cuts them into records."""

    @property
    def text(self) -> bytes: ...
    @property
    def max_line_bytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class EventColumns:
    """One row for each record of a batch, whether or not it will be counted. All columns have shape (rows,).

    offsets; arrival_ms and event_ms, NO_TIME where unknown; key_ids: in the KeyTable, -1 for no key; cells: the cell
    that the item sets; reasons: each a Reason. next_offset: as in RecordBatch. new_keys: key ids that are new here.
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

    def at(self, rows: NDArray[np.intp]) -> EventColumns:
        """These rows alone."""
        return replace(
            self,
            offsets=self.offsets[rows],
            arrival_ms=self.arrival_ms[rows],
            event_ms=self.event_ms[rows],
            key_ids=self.key_ids[rows],
            cells=self.cells[rows],
            reasons=self.reasons[rows],
        )


@dataclass(frozen=True, slots=True)
class Dropped:
    """The records of one batch that are not counted, without any content: number by reason, offsets and reasons.

    released: how many further records lie in windows that an earlier run released, which counted them.
    """

    partition: int
    counts: Mapping[Reason, int]
    offsets: NDArray[np.int64]
    reasons: NDArray[np.uint8]
    released: int = 0


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """The half-open span [start_ms, end_ms), in milliseconds since 1970 UTC."""

    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Record:
    """A record to publish. topic: SKETCHES, ROLLUPS or DEAD_LETTERS, for which a transport has real names."""

    topic: str
    partition: int
    key: bytes
    value: bytes
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class SpanProgress:
    """How far the windows of one released span are decided: which keys have a release, and with which bits.

    name: of the span. Every window that ends at or before closed_through_ms is decided for ever and has its close
    marker. In the window that starts there and ends at cursor_end_ms, the keys up to `cursor` are decided too, in the
    order of their canonical bytes; without a cursor cursor_end_ms is None.
    """

    name: str
    closed_through_ms: int
    cursor: bytes | None = None
    cursor_end_ms: int | None = None

    @property
    def drawn_through_ms(self) -> int:
        """End of the last window in which any key is decided. With a cursor this window is not closed yet."""
        return self.closed_through_ms if self.cursor_end_ms is None else self.cursor_end_ms


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The committed state of one partition: all that its next owner needs to go on. OPERATOR DOMAIN.

    fingerprint: of the configuration. source: the identity of the input. start_ms: the first border of the base span.
    latest_ms: upper end of plausible event times. offset: where replay starts. clock_ms: the largest arrival time
    before it. declared: a digest of those declared keys of this partition that took effect in a window in which
    anything is decided; "" before the first such window, and where keys are not declared. mark: of the bytes of the
    input before the position (transport/files/input_mark.py); "" for an input without marks.
    """

    fingerprint: str
    partitions: int
    source: str
    start_ms: int
    latest_ms: int
    spans: tuple[SpanProgress, ...]
    """One for each released span, the base span first."""
    clock_ms: int
    offset: int
    declared: str = ""
    mark: str = ""

    @property
    def base(self) -> SpanProgress:
        """Of the finest span."""
        return self.spans[0]

    @property
    def drawn(self) -> dict[str, int]:
        """Span to the border up to which it is drawn, as in Step."""
        if len(self.spans) == 1 and self.base.name not in CALENDAR_UNITS:
            return {"": self.base.drawn_through_ms}
        return {span.name: span.drawn_through_ms for span in self.spans}

    @property
    def drawn_through_ms(self) -> int:
        """No key is decided in any window, of any span, that starts at or after this."""
        return max(span.drawn_through_ms for span in self.spans)


@dataclass(frozen=True, slots=True)
class Commit:
    """A position to commit, in one transaction with records: where replay starts, and the encoded state (metadata)."""

    partition: int
    offset: int
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction: records to publish and positions to commit, all of them or none.

    drawn: (span, border) of each released span of which this step decides anything, released or withheld: no key is
    decided in a window of it that starts at or after the border. span: its name; "" for the only one, of a fixed size.
    """

    publish: tuple[Record, ...] = ()
    commit: tuple[Commit, ...] = ()
    drawn: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A committed record of a published topic, as its readers see it."""

    offset: int
    partition: int
    key: bytes
    value: bytes
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Assigned:
    """This worker now owns the partition. committed: its last committed position; None before the first commit."""

    partition: int
    committed: Commit | None = field(default=None)


@dataclass(frozen=True, slots=True)
class Revoked:
    """This worker lost the partition: it must drop its open windows and publish nothing of them."""

    partition: int


@dataclass(frozen=True, slots=True)
class InputEnd:
    """Everything that can be read of a partition by now was read. complete: nothing will ever follow.

    asked_ms: a time of the wall clock; all that was in the partition then has been read. NO_TIME where none is known.
    next_offset: where reading goes on, if that lies behind offsets that hold no record and are in no batch; else None.
    """

    partition: int
    complete: bool
    asked_ms: int = NO_TIME
    next_offset: int | None = None
