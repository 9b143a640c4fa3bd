"""The records of a roll-up that are due, in the order in which they are published.

What is made of one released span comes in the order (end of span, grain, key) once it is final, and the cursor is the
last place of that order that has gone into a step. What has expired comes behind it, as it stands, and moves no cursor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from sfm_stream.estimation.estimate import Estimate, estimate_many
from sfm_stream.pipeline.rollup.open_spans import KeySum, OpenSpan
from sfm_stream.pipeline.rollup.position import Cursor
from sfm_stream.pipeline.rollup.span_rollup import SpanRollup
from sfm_stream.sketch.agreement import SketchKind
from sfm_stream.sketch.tally_sum import TallySum
from sfm_stream.wire.codec import RollupRecord

_TOGETHER = 256
"""Keys that are estimated side by side."""


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
        for keys in _batches(span.keys):
            sums: dict[bytes, KeySum] = {}
            alike: list[tuple[KeySum, KeySum]] = []
            for key in keys:
                mine = span.keys.pop(key)
                parts = [around.add_part(span.window, key, mine.sum) for around in coarser]
                # Replay: up to the cursor all is published already, and coarser spans need it again.
                if not rollup.cursor.covers(span.window.end_ms, _grain(span), key):
                    sums[key] = mine
                    alike += [(part, mine) for part in parts if part is not None]
            answers = _answers(rollup, sums.values())
            for part, same in alike:
                part.answered = same.answered
            for key, answer in zip(sums, answers, strict=True):
                content = _record(rollup, span, key, sums[key].sum, answer, complete=True)
                yield DueRecord(content, rollup, Cursor(*span.publication_order, key))
        rollup.publish(span)


def provisional_records(rollup: SpanRollup, before_ms: int) -> Iterator[DueRecord]:
    """The records of open spans that end at or before before_ms, as they stand, where they changed since the last."""
    for span in rollup.expired(before_ms):
        parts = rollup.parts(span)
        for keys in _batches({key for part in (span, *parts) for key in part.keys}):
            totals = {key: total for key in keys if (total := _as_it_stands(rollup, span, parts, key)) is not None}
            for (key, total), answer in zip(totals.items(), _answers(rollup, totals.values()), strict=True):
                content = _record(rollup, span, key, total.sum, answer, complete=False)
                span.provisional[key] = content.revision
                yield DueRecord(content, rollup, None)


def _batches(keys: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The keys in order, as many at once as are estimated side by side."""
    in_order = sorted(keys)
    return (in_order[low : low + _TOGETHER] for low in range(0, len(in_order), _TOGETHER))


def _as_it_stands(rollup: SpanRollup, span: OpenSpan, parts: list[OpenSpan], key: bytes) -> KeySum | None:
    """The sum of a key by now; None where its record would say nothing new."""
    if rollup.cursor.covers(span.window.end_ms, _grain(span), key):
        return None
    inside = [part for part in parts if key in part.keys and not span.has_part(part.window, key)]
    sums = [part.keys[key] for part in (span, *inside) if key in part.keys]
    revision = _revision(rollup, span, sum(part.sum.releases for part in sums), complete=False)
    if span.provisional.get(key, 0) >= revision:
        return None
    if len(sums) == 1:
        return sums[0]
    total = TallySum.like(sums[0].sum)
    for part in sums:
        total.add_sum(part.sum)
    return KeySum(total)


def _answers(rollup: SpanRollup, sums: Iterable[KeySum]) -> list[Estimate]:
    """The estimate of each sum. It is a function of its releases alone, and made once for as many."""
    several = list(sums)
    new = [each for each in several if each.answered is None or each.answered[0] != each.sum.releases]
    # Version 1 has no field for what each release says, and a day may have been rebuilt from its records.
    histograms = [each.sum.histogram() for each in new]
    if rollup.span is None:
        histograms = [replace(histogram, sizes=None) for histogram in histograms]
    for each, answer in zip(new, estimate_many(histograms), strict=True):
        each.answered = each.sum.releases, answer
    return [each.answered[1] for each in several if each.answered is not None]


def _record(
    rollup: SpanRollup, span: OpenSpan, key: bytes, total: TallySum, answer: Estimate, complete: bool
) -> RollupRecord:
    """The record of one key and span: estimate and coverage; a function of its inputs alone."""
    head, origin = rollup.head, None
    if rollup.span is not None:
        origin = "raw" if rollup.is_raw(span) else "merged"
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
        released=total.releases,
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
        kind=SketchKind.of(total),
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
