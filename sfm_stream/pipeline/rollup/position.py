"""The committed state of a roll-up as bytes, read strictly."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from sfm_stream.errors import StateError
from sfm_stream.types import Commit
from sfm_stream.units import GRAINS

VERSION = 1


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in the order (end of span, grain, key) in which roll-ups are published; key None: the whole span."""

    end_ms: int
    rank: int
    key: bytes | None

    def covers(self, end_ms: int, grain: str, key: bytes | None) -> bool:
        """Whether this key, or with None the whole span, lies at or before the cursor."""
        mine, theirs = (self.end_ms, self.rank), (end_ms, GRAINS.index(grain))
        if mine != theirs:
            return theirs < mine
        return self.key is None or (key is not None and key <= self.key)


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
    zone: str
    offset: int
    epochs: tuple[EpochState, ...]


class _Stored(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    version: int
    zone: str
    offset: int
    epochs: tuple[EpochState, ...]


_DECODER = msgspec.json.Decoder(_Stored, strict=True)


def encode_rollup_state(state: RollupState) -> bytes:
    """JSON text, so that it also fits the metadata of a Kafka offset commit."""
    return msgspec.json.encode(_Stored(VERSION, state.zone, state.offset, state.epochs))


def decode_rollup_state(commit: Commit) -> RollupState:
    """The state in a committed position. Raises StateError where it is not one this version wrote."""
    try:
        stored = _DECODER.decode(commit.metadata)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StateError(
            f"roll-up of partition {commit.partition}: the committed state cannot be read: {error}"
        ) from error
    if stored.version != VERSION or stored.offset != commit.offset:
        raise StateError(
            f"roll-up of partition {commit.partition}: committed state of version {stored.version} at offset "
            f"{stored.offset}; this release reads version {VERSION} and the position says {commit.offset}"
        )
    return RollupState(stored.zone, stored.offset, stored.epochs)
