"""The committed state of a partition that is counted: its bytes, and the checks before a run goes on from it."""

from __future__ import annotations

import hashlib

from sfm_stream.errors import StateError
from sfm_stream.pipeline.counting.plan import CountingPlan
from sfm_stream.privacy.key_rules import DeclaredKeys
from sfm_stream.readable import instant
from sfm_stream.types import NO_TIME, Commit, PartitionState, SpanProgress
from sfm_stream.wire.keys import encode_key
from sfm_stream.wire.stored_state import StateCodec, StoredFields


class _PositionFields(StoredFields, frozen=True):
    fingerprint: str
    partitions: int
    source: str
    window_ms: int
    start_ms: int
    latest_ms: int
    closed_through_ms: int
    clock_ms: int
    offset: int
    declared: str
    cursor: bytes | None
    mark: str = ""


_CODEC = StateCodec(_PositionFields, version=1)


def first_state(plan: CountingPlan, source: str, latest_ms: int, offset: int) -> PartitionState:
    """The state at the first start of an epoch: nothing is closed, no clock is known. offset: where reading begins."""
    start_ms = plan.windows.start_ms
    return PartitionState(
        fingerprint=plan.fingerprint,
        partitions=plan.partitions,
        source=source,
        start_ms=start_ms,
        latest_ms=latest_ms,
        spans=tuple(SpanProgress(span.size_ms, start_ms) for span in plan.spans),
        clock_ms=NO_TIME,
        offset=offset,
    )


def encode_state(state: PartitionState) -> bytes:
    """The bytes of a state. Without a mark they are equal to those of earlier versions, which had no marks."""
    span = state.span
    return _CODEC.encode(
        state.fingerprint,
        state.partitions,
        state.source,
        span.size_ms,
        state.start_ms,
        state.latest_ms,
        span.closed_through_ms,
        state.clock_ms,
        state.offset,
        state.declared,
        span.cursor,
        *([state.mark] if state.mark else []),
    )


def decode_state(commit: Commit) -> PartitionState:
    """The state in a committed position. Raises StateError where it is not one this version wrote."""
    stored = _CODEC.decode_commit(commit, f"partition {commit.partition}")
    return PartitionState(
        fingerprint=stored.fingerprint,
        partitions=stored.partitions,
        source=stored.source,
        start_ms=stored.start_ms,
        latest_ms=stored.latest_ms,
        spans=(SpanProgress(stored.window_ms, stored.closed_through_ms, stored.cursor),),
        clock_ms=stored.clock_ms,
        offset=stored.offset,
        declared=stored.declared,
        mark=stored.mark,
    )


def declared_digest(plan: CountingPlan, drawn_ms: int) -> str:
    """Digest of the plan's declared keys that took effect in a window that ends at or before drawn_ms.

    "" in other modes, and while no window is drawn: a list binds from its first release on.
    """
    if not isinstance(plan.keys, DeclaredKeys) or drawn_ms <= plan.windows.start_ms:
        return ""
    closed = sorted(
        (encode_key(key), max(since, plan.windows.start_ms))
        for key, since in plan.keys.effective.items()
        if since < drawn_ms
    )
    return hashlib.sha256(repr(closed).encode()).hexdigest()[:32]


def require_continuation(state: PartitionState, plan: CountingPlan, source: str, partition: int) -> None:
    """Raise StateError unless a run of this plan may go on from this state; the message says what to do.

    plan: that of the partition, with the declared keys that it owns.
    """
    drawn_ms = state.drawn_through_ms
    if state.fingerprint != plan.fingerprint:
        raise StateError(
            f"pipeline {plan.pipeline}, epoch {plan.epoch}: the configuration differs from the one that made the "
            f"releases so far (fingerprint {state.fingerprint} then, {plan.fingerprint} now). Releases of two "
            "configurations must not mix: raise pipeline.epoch and set window.start to a window border not before "
            f"{instant(drawn_ms)}"
        )
    if state.partitions != plan.partitions:
        raise StateError(
            f"the input had {state.partitions} partitions and now has {plan.partitions}: keys may have moved. "
            "Raise pipeline.epoch and set window.start to a window border behind all that any partition ever released, "
            f"this one up to {instant(drawn_ms)}"
        )
    # An input with a mark is known by its content, whatever its name is now.
    if state.source != source and not state.mark:
        raise StateError(
            f"partition {partition}: the input is {source!r}, the state is of {state.source!r}. "
            "Use the same input. Another one needs a pipeline.id of its own, and where it holds any of the same events "
            f"a window.start not before {instant(drawn_ms)}, up to which they are released"
        )
    if state.start_ms != plan.windows.start_ms:
        raise StateError(
            f"window.start is {instant(plan.windows.start_ms)}, this epoch began at {instant(state.start_ms)}; "
            "it is fixed at first start"
        )
    # Before the first draw any list will do. Earlier versions stored a digest even then.
    if drawn_ms > state.start_ms and state.declared != declared_digest(plan, drawn_ms):
        raise StateError(
            f"partition {partition}: privacy.declared changed for windows that are already released. A new key takes "
            f"effect in a window that starts at or after {instant(drawn_ms)}; a key is never withdrawn within an epoch"
        )
