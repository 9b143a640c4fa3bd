"""The committed state of a partition that is counted: its bytes, and the checks before a run goes on from it."""

from __future__ import annotations

import hashlib

import msgspec

from sfm_stream.errors import StateError
from sfm_stream.pipeline.counting.plan import CountingPlan
from sfm_stream.privacy.key_rules import DeclaredKeys
from sfm_stream.readable import duration, instant
from sfm_stream.types import NO_TIME, Commit, PartitionState, SpanProgress
from sfm_stream.windows.grid import fixed_size_ms
from sfm_stream.wire.keys import encode_key
from sfm_stream.wire.stored_state import StateCodec, StoredFields, stored_version


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


class _SpanFields(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    name: str
    closed_through_ms: int
    cursor: bytes | None
    cursor_end_ms: int | None


class _SpansPositionFields(StoredFields, frozen=True):
    fingerprint: str
    partitions: int
    source: str
    start_ms: int
    latest_ms: int
    clock_ms: int
    offset: int
    declared: str
    mark: str
    spans: tuple[_SpanFields, ...]


_READS = "1 and 2"
_CODEC = StateCodec(_PositionFields, version=1, reads=_READS)
_SPANS_CODEC = StateCodec(_SpansPositionFields, version=2, reads=_READS)
"""Version 1 has one span of a fixed length; version 2 any other spans."""


def first_state(plan: CountingPlan, source: str, latest_ms: int, offset: int) -> PartitionState:
    """The state at the first start of an epoch: nothing is closed, no clock is known. offset: where reading begins."""
    return PartitionState(
        fingerprint=plan.fingerprint,
        partitions=plan.partitions,
        source=source,
        start_ms=plan.windows.start_ms,
        latest_ms=latest_ms,
        spans=first_progress(plan),
        clock_ms=NO_TIME,
        offset=offset,
    )


def first_progress(plan: CountingPlan) -> tuple[SpanProgress, ...]:
    """Of each span, before any window of it is drawn: closed through no later border than the base span is."""
    start_ms = plan.windows.start_ms
    return tuple(SpanProgress(span.name, min(start_ms, windows.start_ms)) for span, windows in plan.counted)


def encode_state(state: PartitionState) -> bytes:
    """The bytes of a state. Of one span of a fixed length they are those of earlier versions, which had no others; so
    are those without a mark.
    """
    size_ms = fixed_size_ms(state.base.name)
    if len(state.spans) > 1 or size_ms is None:
        return _of_spans(state)
    span = state.base
    return _CODEC.encode(
        state.fingerprint,
        state.partitions,
        state.source,
        size_ms,
        state.start_ms,
        state.latest_ms,
        span.closed_through_ms,
        state.clock_ms,
        state.offset,
        state.declared,
        span.cursor,
        *([state.mark] if state.mark else []),
    )


def _of_spans(state: PartitionState) -> bytes:
    return _SPANS_CODEC.encode(
        state.fingerprint,
        state.partitions,
        state.source,
        state.start_ms,
        state.latest_ms,
        state.clock_ms,
        state.offset,
        state.declared,
        state.mark,
        [[span.name, span.closed_through_ms, span.cursor, span.cursor_end_ms] for span in state.spans],
    )


def decode_state(commit: Commit) -> PartitionState:
    """The state in a committed position. Raises StateError where it is not one this version wrote."""
    where = f"partition {commit.partition}"
    if stored_version(commit.metadata) == _SPANS_CODEC.version:
        of_spans = _SPANS_CODEC.decode_commit(commit, where)
        if not of_spans.spans or any((each.cursor is None) != (each.cursor_end_ms is None) for each in of_spans.spans):
            raise StateError(f"{where}: the committed state cannot be read: it has no spans, or half a cursor")
        spans = (SpanProgress(s.name, s.closed_through_ms, s.cursor, s.cursor_end_ms) for s in of_spans.spans)
        return _state(of_spans, tuple(spans))
    stored = _CODEC.decode_commit(commit, where)
    cursor_end_ms = None if stored.cursor is None else stored.closed_through_ms + stored.window_ms
    name = duration(stored.window_ms)
    return _state(stored, (SpanProgress(name, stored.closed_through_ms, stored.cursor, cursor_end_ms),))


def _state(stored: _PositionFields | _SpansPositionFields, spans: tuple[SpanProgress, ...]) -> PartitionState:
    return PartitionState(
        fingerprint=stored.fingerprint,
        partitions=stored.partitions,
        source=stored.source,
        start_ms=stored.start_ms,
        latest_ms=stored.latest_ms,
        spans=spans,
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
    start_ms = plan.first_border_ms
    closed = sorted(
        (encode_key(key), max(since, start_ms)) for key, since in plan.keys.effective.items() if since < drawn_ms
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
