"""The records of a roll-up that are due, in the order in which they are published.

What is made of one released span comes in the order (end of span, grain, key) once it is final, and the cursor is the
last place of that order that has gone into a step. What has expired comes behind it, as it stands, and moves no cursor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sfm_stream.estimation.estimate import estimate
from sfm_stream.pipeline.rollup.open_spans import OpenSpan
from sfm_stream.pipeline.rollup.position import Cursor
from sfm_stream.pipeline.rollup.span_rollup import SpanRollup
from sfm_stream.sketch.agreement import SketchKind
from sfm_stream.sketch.tally_sum import TallySum
from sfm_stream.wire.codec import RollupRecord


@dataclass(frozen=True, slots=True)
class DueRecord:
    """A record to publish. cursor: of its roll-up once the record is in a step; None where it does not move."""

    content: RollupRecord
    rollup: SpanRollup
    cursor: Cursor | None


def final_records(rollup: SpanRollup, final_ms: Callable[[], int]) -> Iterator[DueRecord]:
    """The records of every span that ends at or before final_ms(), which is asked again before each span.

    A span is closed when the record behind its last one is asked for, or the end is met.
    """
    while (span := rollup.first_final(final_ms())) is not None:
        coarser = rollup.coarser(span.window) if span.grain == rollup.grains.finest else []
        for key in sorted(span.keys):
            total = span.keys.pop(key).sum  # its memory is free again before the next key takes any
            for around in coarser:
                around.add_part(span.window, key, total)
            if rollup.cursor.covers(span.window.end_ms, _grain(span), key):
                continue  # replay: it is published already, and coarser spans need it again
            content = _record(rollup, span, key, total, complete=True)
            yield DueRecord(content, rollup, Cursor(*span.publication_order, key))
        rollup.publish(span)


def provisional_records(rollup: SpanRollup, before_ms: int) -> Iterator[DueRecord]:
    """The records of open spans that end at or before before_ms, as they stand, where they changed since the last."""
    for span in rollup.expired(before_ms):
        parts = rollup.parts(span)
        for key in sorted({key for part in (span, *parts) for key in part.keys}):
            if rollup.cursor.covers(span.window.end_ms, _grain(span), key):
                continue
            inside = [part for part in parts if key in part.keys and not span.has_part(part.window, key)]
            sums = [part.keys[key].sum for part in (span, *inside) if key in part.keys]
            revision = _revision(rollup, span, sum(part.releases for part in sums), complete=False)
            if span.provisional.get(key, 0) >= revision:
                continue
            total = TallySum.like(sums[0])
            for part in sums:
                total.add_sum(part)
            content = _record(rollup, span, key, total, complete=False)
            span.provisional[key] = revision
            yield DueRecord(content, rollup, None)


def _record(rollup: SpanRollup, span: OpenSpan, key: bytes, total: TallySum, complete: bool) -> RollupRecord:
    """The record of one key and span: estimate and coverage; a function of its inputs alone."""
    tally, origin = total.tally(), None
    if rollup.span is None:
        # Version 1 has no field for what each release says, and a day may have been rebuilt from its records.
        tally = replace(tally, sizes=None)
    else:
        origin = "raw" if rollup.is_raw(span) else "merged"
    answer, head = estimate(tally), rollup.head
    return RollupRecord(
        pipeline=head.pipeline,
        epoch=head.epoch,
        partition=head.partition,
        partitions=head.partitions,
        grain=_grain(span),
        window=span.window,
        zone=rollup.calendar.zone,
        key=key,
        unit=rollup.unit,
        released=tally.releases,
        decided=rollup.decided.count_in(span.window),
        windows=rollup.decided.windows_in(span.window),
        complete=complete,
        revision=_revision(rollup, span, total.releases, complete),
        tally=None,
        merged=None,
        value=_rounded(answer.value),
        standard_error=_rounded(answer.standard_error),
        low=_rounded(answer.low),
        high=_rounded(answer.high),
        status=str(answer.status),
        confidence=answer.confidence,
        origin=origin,
        span=rollup.span,
        count_epsilon=rollup.count_epsilon,
        kind=SketchKind.of(tally),
    )


def _grain(span: OpenSpan) -> str:
    """The grain of a span that is published."""
    assert span.grain is not None
    return span.grain


def _revision(rollup: SpanRollup, span: OpenSpan, released: int, complete: bool) -> int:
    """Releases merged and windows decided, plus one when nothing more can come.

    None of the three ever goes back, so two records of one span and key with equal sums agree in each of them.
    """
    return released + rollup.decided.count_in(span.window) + complete


def _rounded(value: float) -> float:
    # Six digits: more than the noise leaves, few enough that the last bit of a library's logarithm does not show.
    return float(f"{value:.6g}")
