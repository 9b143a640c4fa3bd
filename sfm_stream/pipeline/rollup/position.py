"""The committed state of a roll-up, and its bytes."""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.types import Commit
from sfm_stream.units import GRAINS
from sfm_stream.wire.stored_state import StateCodec, StoredFields


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last record published, in the order (end of span, rank of grain, key) of roll-ups; key None: a whole span."""

    end_ms: int
    rank: int
    key: bytes | None

    def covers(self, end_ms: int, grain: str, key: bytes | None) -> bool:
        """Whether this key, or with None the whole span, is published."""
        mine, theirs = (self.end_ms, self.rank), (end_ms, GRAINS.index(grain))
        if mine != theirs:
            return theirs < mine
        return self.key is None or (key is not None and key <= self.key)


NOTHING_PUBLISHED = Cursor(0, 0, None)


@dataclass(frozen=True, slots=True)
class EpochState:
    """What one epoch has decided (from_ms..through_ms) and how far its roll-ups are published."""

    epoch: int
    partitions: int
    window_ms: int
    from_ms: int
    through_ms: int
    cursor: Cursor


@dataclass(frozen=True, slots=True)
class RollupState:
    """What is committed with every step: all that a successor needs to go on, besides the published roll-ups."""

    zone: str
    offset: int
    epochs: tuple[EpochState, ...]


class _RollupFields(StoredFields, frozen=True):
    zone: str
    offset: int
    epochs: tuple[EpochState, ...]


_CODEC = StateCodec(_RollupFields, version=1)


def encode_rollup_state(state: RollupState) -> bytes:
    """The bytes of a state."""
    return _CODEC.encode(state.zone, state.offset, state.epochs)


def decode_rollup_state(commit: Commit) -> RollupState:
    """The state in a committed position. Raises StateError where it is not one this version wrote."""
    stored = _CODEC.decode_commit(commit, f"roll-up of partition {commit.partition}")
    return RollupState(stored.zone, stored.offset, stored.epochs)
