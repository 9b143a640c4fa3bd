"""Epochs with several released spans: what is passed on from raw, what is merged, and when.

Random logs: tests/properties/test_rollup_spans.py. Which grain is made of what: test_grains.py.
"""

from decimal import Decimal

import pytest
from support.rollup_cases import T0, UTC, A, B, quarter
from support.rollup_runs import DAY_MS, HOUR_MS, QUARTER_MS, K, at, bits_of, marker, release, run_of

from sfm_stream.errors import IncompatibleError, StateError
from sfm_stream.estimation.estimate import estimate, estimate_many
from sfm_stream.pipeline.rollup import publication
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.pipeline.rollup.position import decode_rollup_state
from sfm_stream.sketch.sfm import NoisyCount
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.units import FOREVER_MS
from sfm_stream.wire.codec import decode, decode_release

SPANS = ("15m", "hour", "day")
SIZES_MS = {"15m": QUARTER_MS, "30m": 2 * QUARTER_MS, "hour": HOUR_MS}
DAY_SHAPE = SketchShape(32, 3)


def of(span, start_ms, key="a", end_ms=None, **other):
    """A release of a span."""
    window_ms = SIZES_MS[span] if end_ms is None else end_ms - start_ms
    return release(start_ms, key, other.pop("bits", None), window_ms=window_ms, span=span, **other)


def close(span, start_ms, through_ms, spans=SPANS, **other):
    window_ms = SIZES_MS.get(span, through_ms - start_ms)
    return marker(start_ms, through_ms, window_ms, span=span, spans=spans, **other)


def hour_log(number, spans=SPANS, **other):
    """An hour of four quarters of two keys, and the release of the hour itself."""
    start = T0 + number * HOUR_MS
    log = []
    for low in range(start, start + HOUR_MS, QUARTER_MS):
        log += [of("15m", low, "a", **other), of("15m", low, "b", **other)]
        log.append(close("15m", low, low + QUARTER_MS, spans, **other))
    return [*log, of("hour", start, **other), close("hour", start, start + HOUR_MS, spans, **other)]


def day(key="a", number=0, **other):
    start = T0 + number * DAY_MS
    return of("day", start, key, start + DAY_MS, shape=DAY_SHAPE, k=K + 1, **other)


def table(records):
    """(grain, start in hours, key, origin, span, released, decided, windows) of each record."""
    return [
        (r.grain, (r.window.start_ms - T0) / HOUR_MS, r.key, r.origin, r.span, r.released, r.decided, r.windows)
        for r in records
    ]


def test_every_span_from_raw_is_passed_on_once_and_nothing_of_its_name_is_merged():
    log = [record for number in range(24) for record in hour_log(number)]
    log += [day("a"), day("b"), close("day", T0, T0 + DAY_MS)]
    published = run_of(UTC, log).finish()
    assert all(r.complete and r.origin == "raw" for r in published)
    assert [row for row in table(published) if row[0] == "hour"] == [
        ("hour", n, A, "raw", "hour", 1, 1, 1) for n in range(24)
    ]
    assert [row for row in table(published) if row[0] == "day"] == [
        ("day", 0, key, "raw", "day", 1, 1, 1) for key in (A, B)
    ]
    assert sum(r.grain == "quarter" for r in published) == 2 * 96
    days = [decode_release(payload) for payload in log[-3:-1]]
    for record, passed in zip([r for r in published if r.grain == "day"], days, strict=True):
        assert record.tally == Tally.of([passed.sketch])
        assert (record.merged.bits, record.window) == (passed.sketch.bits, passed.window)
        assert record.merged.flip_threshold == passed.sketch.flip_threshold
        assert record.revision == 3


def test_a_record_from_raw_has_the_estimate_of_its_release(monkeypatch):
    """With the noisy count of the release; after a restart too."""
    monkeypatch.setattr(publication, "estimate_many", estimate_many)
    shape = SketchShape(256, 8)
    count = NoisyCount(90, Decimal("0.2"))
    log = [of("hour", T0, shape=shape, bits=bits_of(3, shape), count=count)]
    log.append(close("hour", T0, T0 + HOUR_MS, ("hour",)))
    run = run_of(UTC, log)
    run.read(1)
    run.restart()
    (hour,) = run.finish()
    found = estimate(decode_release(log[0]).sketch)
    assert (hour.value, hour.standard_error, hour.low, hour.high) == pytest.approx(
        (found.value, found.standard_error, found.low, found.high), rel=1e-5
    )
    plain = estimate(decode_release(of("hour", T0, shape=shape, bits=bits_of(3, shape))).sketch)
    assert hour.value != pytest.approx(plain.value, rel=1e-2), "the count tells something"
    assert hour.tally.sizes.counts == (count,)


def test_days_are_merged_from_the_hours_where_they_are_not_released():
    """Of the hours, not of the quarters, though both fill a day; a restart rebuilds the day from published hours."""
    spans = ("15m", "hour")
    log = [record for number in (0, 1, 5) for record in hour_log(number, spans)]
    gap = [
        close("15m", T0 + 2 * HOUR_MS, T0 + 5 * HOUR_MS, spans),
        close("hour", T0 + 2 * HOUR_MS, T0 + 5 * HOUR_MS, spans),
    ]
    log[28:28] = gap
    rest = [close(span, T0 + 6 * HOUR_MS, T0 + DAY_MS, spans) for span in spans]
    run = run_of(UTC, log)
    run.finish()
    run.checkpoint()
    run.restart()
    run.log += rest
    (total,) = run.finish()
    hours = [r for r in map(decode_release, [p for p in log if hasattr(decode(p), "sketch")]) if r.span == "hour"]
    assert table([total]) == [("day", 0, A, "merged", "hour", 3, 24, 24)]
    assert total.tally == Tally.of(each.sketch for each in hours)
    assert total.tally.sizes == Tally.of(each.sketch for each in hours).sizes
    whole = run_of(UTC, [*log, *rest])
    assert whole.finish()[-1] == total


def test_nothing_is_published_before_it_is_known_which_spans_there_are():
    """An hour of quarters that expires is not taken for one to be merged, and its releases are read again."""
    run = run_of(UTC, [of("15m", T0), of("15m", T0, "b")])
    assert run.finish(FOREVER_MS) == []
    assert not run.checkpoint() or run.commit.offset == 0
    run.restart()
    assert run.at == 0
    run.log.append(close("15m", T0, T0 + QUARTER_MS))
    assert [row[:5] for row in table(run.finish())] == [("quarter", 0, key, "raw", "15m") for key in (A, B)]
    assert (run.rollup.seen.merged, run.rollup.seen.markers) == (2, 1)


def test_releases_that_nothing_is_made_of_are_told_from_second_payloads_until_their_marker():
    spans = ("30m", "hour", "day")
    first = of("30m", T0, bits=bits_of(1))
    second = of("30m", T0, bits=bits_of(2))
    log = [of("30m", T0 - HOUR_MS), close("30m", T0 - HOUR_MS, T0, spans), first, first, second]
    run = run_of(UTC, log)
    assert run.finish() == []
    run.checkpoint()
    assert run.commit.offset == 2, "what is told apart is read again"
    run.restart()
    run.log += [
        second,
        close("30m", T0, T0 + HOUR_MS, spans),
        second,
        of("hour", T0),
        close("hour", T0, T0 + HOUR_MS, spans),
    ]
    assert [row[:5] for row in table(run.finish())] == [("hour", 0, A, "raw", "hour")]
    seen = run.rollup.seen
    assert (seen.merged, seen.duplicate, seen.conflict, seen.already_final) == (2, 1, 2, 1)
    run.checkpoint()
    assert run.commit.offset == len(run.log)


def test_a_release_from_raw_is_not_published_before_its_marker():
    run = run_of(UTC, [*hour_log(0)[:-1]])
    assert not [r for r in run.finish(FOREVER_MS) if r.grain == "hour"]
    run.log.append(close("hour", T0, T0 + HOUR_MS))
    assert [row[:4] for row in table(run.finish())] == [("hour", 0, A, "raw")]


def test_spans_of_their_own_length_and_shape_do_not_mix_and_are_checked():
    log = hour_log(0)
    for other, match in (
        ({"shape": DAY_SHAPE}, "shape of the releases differs"),
        ({"k": K + 1}, "flip probability k"),
        ({"unit": "blanked"}, "privacy unit"),
    ):
        run = run_of(UTC, log)
        run.finish()
        with pytest.raises(IncompatibleError, match=match):
            run.rollup.add(len(log), of("15m", T0 + HOUR_MS, **other))


@pytest.mark.parametrize(
    ("record", "match"),
    [
        (of("30m", T0 + HOUR_MS), r"released spans of the releases differs, 15m, hour, day against 30m"),
        (release(T0 + HOUR_MS), r"released spans of the releases differs, 15m, hour, day against one without a name"),
        (close("15m", T0 + HOUR_MS, T0 + 2 * HOUR_MS, ("15m", "day")), r"15m, hour, day against 15m, day"),
        (
            of("day", T0 + HOUR_MS, end_ms=T0 + DAY_MS + HOUR_MS),
            r", span day: 2026-01-01T01:00:00Z to \S+ is no day of UTC",
        ),
        (close("day", T0 + HOUR_MS, T0 + DAY_MS), r"is no day of UTC \(rollup\.zone\)"),
        (of("15m", T0 + 1), r"span 15m: \S+ is no border of windows of 15m"),
        (of("15m", T0 + HOUR_MS, partitions=2), "partition count"),
    ],
)
def test_records_that_do_not_fit_their_epoch_are_refused(record, match):
    log = hour_log(0)
    run = run_of(UTC, log)
    run.finish()
    with pytest.raises(IncompatibleError, match=match):
        run.rollup.add(len(log), record)


def test_a_name_in_an_epoch_without_names_is_refused():
    run = run_of(UTC, [release(quarter(0))])
    run.finish()
    with pytest.raises(IncompatibleError, match="one without a name against 15m"):
        run.rollup.add(1, of("15m", T0))


def test_a_missing_marker_of_any_span_stops_the_roll_up():
    run = run_of(UTC, [*hour_log(0), *hour_log(1)[:-2], *hour_log(2)])
    with pytest.raises(StateError, match=r"partition 0, span hour: a close marker begins at 2026-01-01T02:00:00Z"):
        run.finish()


def test_an_epoch_that_ends_inside_an_hour_leaves_its_merged_hours_and_days_as_they_are():
    """The next epoch begins there, with spans of its own; longer windows of the first are whole or absent."""
    spans = ("15m", "30m")
    log = [
        record
        for low in (0, 2)
        for n in (low, low + 1)
        for record in (of("15m", quarter(n)), close("15m", quarter(n), quarter(n + 1), spans))
    ]
    log[4:4] = [of("30m", quarter(0)), close("30m", quarter(0), quarter(2), spans)]
    log = log[:-2]  # the epoch ends at 00:45
    later = [close("hour", T0 + HOUR_MS, T0 + 2 * HOUR_MS, ("hour",), epoch=3)]
    start = [close("15m", quarter(3), quarter(4), ("15m",), epoch=2)]
    run = run_of(UTC, log)
    assert [row[:2] for row in table(run.finish())] == [("quarter", n / 4) for n in range(3)]
    run.log += start + later
    assert table(run.finish()) == [
        ("hour", 0, A, "merged", "30m", 1, 1, 2),
        ("day", 0, A, "merged", "30m", 1, 1, 48),
    ]
    run.checkpoint()
    assert run.commit.offset == len(run.log), "nothing of an ended epoch holds replay back"


def test_the_last_day_of_an_epoch_that_ends_with_it_is_passed_on():
    """The marker of its last quarter says that the epoch has ended; the day's own release comes behind it."""
    log = [record for number in range(24) for record in hour_log(number)]
    next_epoch = close("15m", T0 + DAY_MS, T0 + DAY_MS + QUARTER_MS, epoch=2)
    run = run_of(UTC, [*log, next_epoch])
    run.finish()
    run.log += [day(), close("day", T0, T0 + DAY_MS)]
    assert [row[:5] for row in table(run.finish())] == [("day", 0, A, "raw", "day")]
    assert run.rollup.seen.already_final == 0


@pytest.mark.parametrize(("grain", "end"), [("week", "2026-01-12"), ("month", "2026-02-01")])
def test_weeks_and_months_are_passed_on_and_need_no_history(grain, end):
    start, end_ms = at("2026-01-05" if grain == "week" else "2026-01-01"), at(end)
    spans = ("day", grain)
    days = [close("day", low, low + DAY_MS, spans) for low in range(start, end_ms, DAY_MS)]
    days.insert(-1, of("day", end_ms - DAY_MS, end_ms=end_ms))
    run = run_of(UTC, [*days, of(grain, start, end_ms=end_ms), close(grain, start, end_ms, spans)])
    published = run.finish()
    assert [(r.grain, r.window.start_ms, r.window.end_ms, r.origin) for r in published] == [
        ("day", end_ms - DAY_MS, end_ms, "raw"),
        (grain, start, end_ms, "raw"),
    ]
    run.checkpoint()
    assert run.commit.offset == len(run.log)
    run.restart()
    assert run.rollup.recalls_since_ms == FOREVER_MS
    assert not any(run.rollup.recalls(r.window.end_ms) for r in published)
    assert [span.span for span in decode_rollup_state(run.commit).epochs[0].spans] == list(spans)


def test_a_day_of_23_and_a_half_hours():
    lord_howe = calendar("Australia/Lord_Howe", QUARTER_MS, at("2025-01-01"), 2030)
    start, end_ms = at("2025-10-04T13:30"), at("2025-10-05T13:00")
    assert lord_howe.span("day", start).end_ms == end_ms
    spans = ("15m", "day")
    log = [close("15m", start, end_ms, spans), of("day", start, end_ms=end_ms), close("day", start, end_ms, spans)]
    (passed,) = run_of(lord_howe, log).finish()
    assert (passed.grain, passed.origin, passed.windows, passed.window.end_ms - passed.window.start_ms) == (
        "day",
        "raw",
        1,
        47 * QUARTER_MS * 2,
    )
