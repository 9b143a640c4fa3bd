"""One open span: its state, and what becomes of the releases given to it."""

from __future__ import annotations

import pytest
from support.rollup_runs import HOUR_MS, QUARTER_MS, at, bits_of, release

from sfm_stream.pipeline.rollup.open_spans import OpenSpan, ReleaseOutcome, SpanState, state_of
from sfm_stream.pipeline.rollup.position import NOTHING_PUBLISHED, Cursor
from sfm_stream.sketch.tally import Tally
from sfm_stream.types import Window
from sfm_stream.units import GRAINS
from sfm_stream.wire.codec import decode_release

HOUR = Window(10 * HOUR_MS, 11 * HOUR_MS)
RANK = GRAINS.index("hour")


@pytest.mark.parametrize(
    ("cursor", "published"),
    [
        (NOTHING_PUBLISHED, False),
        (Cursor(HOUR.end_ms - 1, RANK + 1, None), False),
        (Cursor(HOUR.end_ms, RANK - 1, None), False),
        (Cursor(HOUR.end_ms, RANK, b"a key"), False),
        (Cursor(HOUR.end_ms, RANK, None), True),
        (Cursor(HOUR.end_ms, RANK + 1, b"a key"), True),
        (Cursor(HOUR.end_ms + 1, 0, b""), True),
    ],
    ids=["nothing", "earlier", "finer", "a part", "the whole span", "coarser", "later"],
)
@pytest.mark.parametrize("final_ms", [0, HOUR.end_ms - 1, HOUR.end_ms, HOUR.end_ms + 1])
def test_a_span_is_open_then_final_then_published(cursor, published, final_ms):
    expected = SpanState.PUBLISHED if published else SpanState.FINAL if final_ms >= HOUR.end_ms else SpanState.OPEN
    assert state_of("hour", HOUR, final_ms, cursor) is expected


T0 = at("2026-01-01")
FIRST, OTHER = (release(T0, bits=bits_of(seed)) for seed in (1, 2))
LATER = release(T0 + QUARTER_MS, bits=bits_of(3))
NEXT_KEY = release(T0, "b", bits_of(4))


def merged(span, *payloads, first=0):
    return [span.merge(decode_release(payload), payload, first + n) for n, payload in enumerate(payloads)]


def test_each_release_is_merged_once_and_a_second_payload_is_kept_out():
    span = OpenSpan("hour", Window(T0, T0 + HOUR_MS))
    assert merged(span, FIRST, FIRST, OTHER, LATER, NEXT_KEY, OTHER, LATER) == [
        ReleaseOutcome.MERGED,
        ReleaseOutcome.DUPLICATE,
        ReleaseOutcome.CONFLICT,
        ReleaseOutcome.MERGED,
        ReleaseOutcome.MERGED,
        ReleaseOutcome.CONFLICT,
        ReleaseOutcome.DUPLICATE,
    ]
    a, b = (decode_release(payload).key for payload in (FIRST, NEXT_KEY))
    assert span.keys[a].sum.tally() == Tally.of(decode_release(payload).sketch for payload in (FIRST, LATER))
    assert span.keys[b].sum.tally() == Tally.of([decode_release(NEXT_KEY).sketch])


def test_replay_begins_at_the_first_release_of_the_span():
    span = OpenSpan("hour", Window(T0, T0 + HOUR_MS))
    assert span.first_offset is None
    merged(span, FIRST, LATER, first=7)
    assert span.first_offset == 7


def test_spans_are_published_by_their_end_and_then_the_finer_grain_first():
    day = OpenSpan("day", Window(T0, T0 + 24 * HOUR_MS))
    last, next_day = (OpenSpan("hour", Window(T0 + n * HOUR_MS, T0 + (n + 1) * HOUR_MS)) for n in (23, 24))
    quarter = OpenSpan("quarter", Window(T0 + 24 * HOUR_MS - QUARTER_MS, T0 + 24 * HOUR_MS))
    wanted = [quarter, last, day, next_day]
    assert sorted([day, next_day, last, quarter], key=lambda span: span.publication_order) == wanted
