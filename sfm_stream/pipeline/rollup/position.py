"""The committed state of a roll-up, and its bytes."""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.types import Commit
from sfm_stream.units import PUBLISHED_GRAINS
from sfm_stream.wire.stored_state import StateCodec, StoredFields, stored_version


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last record published, in the order (end of span, rank of grain, key) of roll-ups; key None: a whole span."""

    end_ms: int
    rank: int
    key: bytes | None

    def covers(self, end_ms: int, grain: str, key: bytes | None) -> bool:
        """Whether this key, or with None the whole span, is published."""
        mine, theirs = (self.end_ms, self.rank), (end_ms, PUBLISHED_GRAINS.index(grain))
        if mine != theirs:
            return theirs < mine
        return self.key is None or (key is not None and key <= self.key)


NOTHING_PUBLISHED = Cursor(0, 0, None)


@dataclass(frozen=True, slots=True)
class SpanPosition:
    """What is decided of one released span (from_ms..through_ms), and how far its roll-ups are published.

    span: its name; None where the records of the epoch name none. window_ms: the size of a window then, else 0: the
    name says it.
    """

    span: str | None
    window_ms: int
    from_ms: int
    through_ms: int
    cursor: Cursor


@dataclass(frozen=True, slots=True)
class EpochState:
    """Where each released span of an epoch stands, the base span first."""

    epoch: int
    partitions: int
    spans: tuple[SpanPosition, ...]


@dataclass(frozen=True, slots=True)
class RollupState:
    """What is committed with every step: all that a successor needs to go on, besides the published roll-ups."""

    zone: str
    offset: int
    epochs: tuple[EpochState, ...]


@dataclass(frozen=True, slots=True)
class _OneSpanEpoch:
    """An epoch with one span, which its records do not name."""

    epoch: int
    partitions: int
    window_ms: int
    from_ms: int
    through_ms: int
    cursor: Cursor

    @classmethod
    def of(cls, state: EpochState) -> _OneSpanEpoch:
        (span,) = state.spans
        return cls(state.epoch, state.partitions, span.window_ms, span.from_ms, span.through_ms, span.cursor)

    def state(self) -> EpochState:
        span = SpanPosition(None, self.window_ms, self.from_ms, self.through_ms, self.cursor)
        return EpochState(self.epoch, self.partitions, (span,))


class _OneSpanFields(StoredFields, frozen=True):
    zone: str
    offset: int
    epochs: tuple[_OneSpanEpoch, ...]


class _NamedSpanFields(StoredFields, frozen=True):
    zone: str
    offset: int
    epochs: tuple[EpochState, ...]


_ONE_SPAN = StateCodec(_OneSpanFields, version=1)
_NAMED_SPANS = StateCodec(_NamedSpanFields, version=2)


def encode_rollup_state(state: RollupState) -> bytes:
    """The bytes of a state: version 2 where the records of an epoch name their spans, else version 1."""
    if any(span.span is not None for epoch in state.epochs for span in epoch.spans):
        return _NAMED_SPANS.encode(state.zone, state.offset, state.epochs)
    return _ONE_SPAN.encode(state.zone, state.offset, tuple(map(_OneSpanEpoch.of, state.epochs)))


def decode_rollup_state(commit: Commit) -> RollupState:
    """The state in a committed position. Raises StateError where it is not one this version wrote."""
    where = f"roll-up of partition {commit.partition}"
    if stored_version(commit.metadata) == _NAMED_SPANS.version:
        named = _NAMED_SPANS.decode_commit(commit, where)
        return RollupState(named.zone, named.offset, named.epochs)
    stored = _ONE_SPAN.decode_commit(commit, where)
    return RollupState(stored.zone, stored.offset, tuple(epoch.state() for epoch in stored.epochs))
