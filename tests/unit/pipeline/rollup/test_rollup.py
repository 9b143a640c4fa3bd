"""The roll-up of one partition: what is published, and when. Random logs: tests/properties/test_rollup_log.py."""

from pathlib import Path

import pytest
from support.rollup_cases import KATHMANDU, T0, UTC, A, B, closed, quarter, shown, windows
from support.rollup_runs import (
    DAY_MS,
    HOUR_MS,
    QUARTER_MS,
    SHAPE,
    K,
    at,
    bits_of,
    marker,
    release,
    run_of,
    whole,
)

from sfm_stream.estimation.estimate import estimate, estimate_many
from sfm_stream.pipeline.rollup import publication
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.sketch.merge import merge
from sfm_stream.sketch.tally import Tally
from sfm_stream.types import Window
from sfm_stream.wire.codec import decode, decode_release, decode_rollup


def test_an_hour_is_published_when_its_last_window_is_decided():
    run = run_of(UTC, [*windows(0, 1), closed(0, 3), *windows(3), closed(3, 4)])
    run.read(3)
    assert run.drain() == []
    run.read(2)
    (hour,) = run.drain()
    assert shown([hour]) == [("hour", 0, A, 3, 4, 4, True)]
    assert hour.tally == Tally.of(decode_release(run.log[i]).sketch for i in (0, 1, 3))
    assert (hour.revision, hour.window, hour.zone) == (3 + 4 + 1, Window(T0, T0 + HOUR_MS), "UTC")


def test_a_day_is_the_tally_of_its_releases_exactly():
    log, releases = [], []
    for number in range(96):
        keys = ("a",) if number % 3 else ("a", "b")
        log += [release(quarter(number), key, bits_of(2 * number + (key == "b"))) for key in keys]
        log.append(closed(number, number + 1))
    run = run_of(UTC, log)
    while run.read(10):
        run.drain()
    for key in (A, B):
        releases = [r for r in map(decode, log) if getattr(r, "key", None) == key]
        (day,) = whole([decode_rollup(run.newest[1, "day", T0, T0 + DAY_MS, key])], log)
        assert day.tally == Tally.of(release.sketch for release in releases)
        assert day.merged == merge(release.sketch for release in releases)
        assert (day.released, day.decided, day.windows, day.complete) == (len(releases), 96, 96, True)
        assert day.revision == len(releases) + 96 + 1


def test_the_figures_of_a_record_are_the_estimate_of_its_tally(monkeypatch):
    monkeypatch.setattr(publication, "estimate_many", estimate_many)
    (hour,) = run_of(UTC, [*windows(0, 1), closed(0, 4)]).finish()
    found = estimate(hour.tally)
    figures = (hour.value, hour.standard_error, hour.low, hour.high)
    wanted = (found.value, found.standard_error, found.low, found.high)
    assert figures == pytest.approx(wanted, rel=1e-5)
    assert (hour.status, hour.confidence) == (str(found.status), 0.95)


def test_order_is_end_of_span_then_grain_then_key():
    log = [release(quarter(n), key) for n in (3, 90, 95, 96) for key in ("b", "a")]
    published = run_of(UTC, [*log, closed(0, 100)]).finish()
    assert [(r.grain, r.window.end_ms, r.key) for r in published] == [
        (grain, T0 + end * HOUR_MS, key)
        for grain, end in (("hour", 1), ("hour", 23), ("hour", 24), ("day", 24), ("hour", 25))
        for key in (A, B)
    ]


def test_a_zone_of_quarters_publishes_quarters_hours_and_local_days():
    """A day of Kathmandu begins at 18:15 UTC."""
    start = at("2025-12-31T18:15")
    log = [release(start + n * QUARTER_MS, bits=bits_of(n)) for n in (0, 2, 3, 95, 96)]
    published = run_of(KATHMANDU, [*log, marker(start, start + 100 * QUARTER_MS)]).finish()
    assert [(r.grain, (r.window.start_ms - start) // QUARTER_MS, r.released, r.windows) for r in published] == [
        ("quarter", 0, 1, 1),
        ("quarter", 2, 1, 1),
        ("hour", -1, 2, 4),  # 18:00 to 19:00; the first quarter was before the start
        ("quarter", 3, 1, 1),
        ("hour", 3, 1, 4),
        ("quarter", 95, 1, 1),
        ("day", 0, 4, 96),
        ("quarter", 96, 1, 1),
        ("hour", 95, 2, 4),
    ]
    day = next(r for r in published if r.grain == "day")
    assert day.tally == Tally.of(decode_release(payload).sketch for payload in log[:4])
    assert (day.zone, day.window) == ("Asia/Kathmandu", Window(start, start + DAY_MS))


@pytest.mark.parametrize(
    ("day", "hours", "first"),
    [("2026-03-08", 23, "2026-03-08T05:00"), ("2026-11-01", 25, "2026-11-01T04:00")],
)
def test_local_days_of_23_and_25_hours(day, hours, first):
    new_york = calendar("America/New_York", HOUR_MS, at("2026-01-01"), 2030)
    start = at(first)
    log = [release(start + n * HOUR_MS, bits=bits_of(n + 1), window_ms=HOUR_MS) for n in range(-1, hours + 1)]
    run = run_of(new_york, [*log, marker(start - HOUR_MS, start + 30 * HOUR_MS, HOUR_MS)])
    days = [r for r in run.finish() if r.grain == "day" and r.window.start_ms == start]
    assert [(r.released, r.windows, r.decided, r.complete) for r in days] == [(hours, hours, hours, True)]
    assert days[0].tally == Tally.of(decode_release(payload).sketch for payload in log[1 : hours + 1])


def test_empty_hours_publish_nothing_and_a_marker_may_pass_over_days():
    log = [*windows(1), closed(0, 4), closed(4, 96 * 5), *windows(96 * 5 + 2), closed(96 * 5, 96 * 6)]
    assert shown(run_of(UTC, log).finish()) == [
        ("hour", 0, A, 1, 4, 4, True),
        ("day", 0, A, 1, 96, 96, True),
        ("hour", 120, A, 1, 4, 4, True),
        ("day", 120, A, 1, 96, 96, True),
    ]


def test_keys_that_appear_in_some_hours_only():
    log = [*windows(0), *windows(5, key="b"), *windows(6, key="b"), closed(0, 96)]
    assert shown(run_of(UTC, log).finish()) == [
        ("hour", 0, A, 1, 4, 4, True),
        ("hour", 1, B, 2, 4, 4, True),
        ("day", 0, A, 1, 96, 96, True),
        ("day", 0, B, 2, 96, 96, True),
    ]


def test_declared_keys_have_a_release_in_every_window():
    log = []
    for number in range(8):
        log += [*windows(number, bits="0" * SHAPE.cells), *windows(number, key="b"), closed(number, number + 1)]
    hours = [r for r in run_of(UTC, log).finish() if r.grain == "hour"]
    assert [(r.key, r.released, r.windows) for r in hours] == [(A, 4, 4), (B, 4, 4)] * 2


def test_markers_alone_publish_nothing_but_move_the_position():
    run = run_of(UTC, [closed(0, 1), closed(1, 96), closed(96, 97)])
    assert run.finish() == []
    assert run.checkpoint()
    assert run.commit.offset == 3
    assert not run.checkpoint(), "nothing moved"
    run.log += [*windows(97), closed(97, 100)]
    assert shown(run.finish()) == [("hour", 24, A, 1, 4, 4, True)]


def test_counting_that_begins_inside_an_hour_shows_in_the_coverage():
    (hour,) = run_of(UTC, [*windows(2), closed(2, 4)]).finish()
    assert (hour.released, hour.decided, hour.windows, hour.complete) == (1, 2, 4, True)


def test_other_pipelines_and_partitions_are_left_alone():
    others = [
        release(quarter(0), pipeline="other", k=K + 1, window_ms=7),
        release(quarter(0), partition=1, partitions=2),
        closed(0, 96, pipeline="other"),
        marker(quarter(50), quarter(60), partition=1, partitions=2),
    ]
    run = run_of(UTC, [*others, *windows(0), *others, closed(0, 4), *others])
    assert shown(run.finish()) == [("hour", 0, A, 1, 4, 4, True)]
    assert (run.rollup.seen.merged, run.rollup.seen.markers, run.rollup.seen.already_final) == (1, 1, 0)


def test_the_example_of_the_documentation():
    """docs/rollups.md, row by row."""
    at_1030 = 10 * 4 + 2
    run = run_of(UTC, [*windows(at_1030), closed(at_1030, 44), *windows(44, 45), closed(44, 46)])
    published = run.finish(T0 + 12 * HOUR_MS)
    run.log += [*windows(46), closed(46, 48), closed(48, 96)]
    published += [record for record in run.finish() if record.complete]
    text = (Path(__file__).parents[4] / "docs" / "rollups.md").read_text()
    table = text.split("| when | span |")[1].split("\n\n")[0].splitlines()[2:]
    assert [[cell.strip() for cell in row.split("|")[2:-1]] for row in table] == [
        [
            f"hour {(r.window.start_ms - T0) // HOUR_MS}:00" if r.grain == "hour" else "day",
            *map(str, (r.released, r.decided, r.windows)),
            "yes" if r.complete else "no",
            str(r.revision),
        ]
        for r in published
    ]
