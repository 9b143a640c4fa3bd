"""The roll-up of one partition, case by case. Random logs against an oracle: tests/properties/test_rollup_log.py."""

from pathlib import Path

import pytest
from support.rollup_runs import (
    DAY_MS,
    HOUR_MS,
    QUARTER_MS,
    SHAPE,
    K,
    Run,
    at,
    bits_of,
    cheap_estimate,
    marker,
    place_of,
    release,
    run_of,
)

from sfm_stream.errors import FormatError, IncompatibleError, StateError
from sfm_stream.estimation.estimate import estimate
from sfm_stream.pipeline.rollup import publication
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.pipeline.rollup.position import decode_rollup_state
from sfm_stream.pipeline.rollup.rollup import Rollup
from sfm_stream.sketch.merge import merge
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.types import Commit, Window
from sfm_stream.wire.codec import decode, decode_release, encode
from sfm_stream.wire.keys import encode_key

UTC = calendar("UTC", QUARTER_MS, 0, 2030)
KATHMANDU = calendar("Asia/Kathmandu", QUARTER_MS, at("2020-01-01"), 2030)
T0 = at("2026-01-01")
A, B = encode_key("a"), encode_key("b")


@pytest.fixture(autouse=True)
def _cheap(monkeypatch):
    monkeypatch.setattr(publication, "estimate", cheap_estimate)


def quarter(number):
    """Start of a window, counted from T0."""
    return T0 + number * QUARTER_MS


def windows(*numbers, key="a", **other):
    return [release(quarter(number), key, **other) for number in numbers]


def closed(low, high, **other):
    return marker(quarter(low), quarter(high), **other)


def shown(records):
    """(grain, hour of the start, key, released, decided, windows, complete) of each record."""
    return [
        (r.grain, (r.window.start_ms - T0) / HOUR_MS, r.key, r.released, r.decided, r.windows, r.complete)
        for r in records
    ]


# what is published, and when


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
        day = decode(run.newest[1, "day", T0, T0 + DAY_MS, key])
        assert day.tally == Tally.of(release.sketch for release in releases)
        assert day.merged == merge(release.sketch for release in releases)
        assert (day.released, day.decided, day.windows, day.complete) == (len(releases), 96, 96, True)
        assert day.revision == len(releases) + 96 + 1


def test_the_figures_of_a_record_are_the_estimate_of_its_tally(monkeypatch):
    monkeypatch.setattr(publication, "estimate", estimate)
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


# duplicates, conflicts, and what does not fit


def test_a_second_payload_for_a_release_is_refused_counted_and_named():
    first, second = release(quarter(0), bits=bits_of(1)), release(quarter(0), bits=bits_of(2))
    run = run_of(UTC, [first, second, first, second, closed(0, 4)])
    (hour,) = run.finish()
    assert hour.tally == Tally.of([decode_release(first).sketch])
    seen = run.rollup.seen
    assert (seen.merged, seen.duplicate, seen.conflict, seen.already_final) == (1, 1, 2, 0)
    assert seen.conflicts == [decode_release(first).release_id.hex()] * 2


def test_a_unit_or_partition_count_of_its_own_does_not_hide_a_conflict():
    """Neither is part of a release's identity; both are refused by name before anything is merged."""
    run = run_of(UTC, windows(0))
    run.read()
    with pytest.raises(IncompatibleError, match="privacy unit"):
        run.rollup.add(1, release(quarter(0), unit="blanked"))


def test_whatever_comes_for_a_final_hour_is_counted_and_changes_nothing():
    log = [*windows(0), closed(0, 4)]
    late = [log[0], release(quarter(0), bits=bits_of(5)), *windows(1), *windows(2)]
    run = run_of(UTC, [*log, *late])
    assert shown(run.finish()) == [("hour", 0, A, 1, 4, 4, True)], "even if it is read before the hour is published"
    assert run.rollup.seen.already_final == 4
    run.log += late
    assert run.finish() == []
    assert (run.rollup.seen.already_final, run.rollup.seen.conflict) == (8, 0)


SHAPES = {"shape": SketchShape(32, 2), "levels": SketchShape(16, 3)}


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("shape", {"shape": SHAPES["shape"]}),
        ("shape", {"shape": SHAPES["levels"]}),
        ("hash", {"hash": "blake2b:x"}),
        ("flip probability k", {"k": K + 1}),
        ("privacy unit", {"unit": "blanked"}),
        ("window size", {"window_ms": QUARTER_MS // 3}),
        ("partition count", {"partitions": 2}),
    ],
)
def test_mixtures_within_an_epoch_are_refused_by_name(name, other):
    run = run_of(UTC, windows(0))
    run.read()
    with pytest.raises(IncompatibleError, match=f"^pipeline views, epoch 1: {name} of the releases differs, "):
        run.rollup.add(1, release(quarter(1), key="b", **other))
    run.rollup.add(2, release(quarter(1), epoch=2, **other))  # welcome in an epoch of its own
    assert run.rollup.seen.merged == 2


@pytest.mark.parametrize("name", ["shape", "hash", "flip probability k", "privacy unit"])
def test_mixtures_are_refused_after_a_restart_too(name):
    """The day is rebuilt from published hours: a sketch of another kind must not be added to it."""
    other = {"shape": SHAPES["shape"], "hash": "other", "flip probability k": K + 1, "privacy unit": "blanked"}[name]
    run = run_of(UTC, [*windows(0), closed(0, 4)])
    run.finish()
    run.checkpoint()
    run.restart()
    assert run.at == 2
    with pytest.raises(IncompatibleError, match=name):
        run.rollup.add(
            2, release(quarter(4), **{{"flip probability k": "k", "privacy unit": "unit"}.get(name, name): other})
        )


@pytest.mark.parametrize("other", [{"window_ms": QUARTER_MS // 3}, {"partitions": 2}], ids=["window", "partitions"])
@pytest.mark.parametrize("first", ["release", "marker"])
def test_markers_must_agree_with_their_epoch(first, other):
    run = run_of(UTC, windows(0) if first == "release" else [closed(0, 1)])
    run.read()
    with pytest.raises(IncompatibleError, match=r"window size|partition count"):
        run.rollup.add(1, closed(1, 2, **other))
    with pytest.raises(IncompatibleError, match=r"window size|partition count"):
        run.rollup.add(1, release(quarter(1), **other))


@pytest.mark.parametrize(
    ("start", "window_ms"), [(T0, 7 * 60_000), (T0, 2 * HOUR_MS), (T0 + 1, QUARTER_MS), (T0 + 50 * 60_000, 20 * 60_000)]
)
def test_windows_that_no_hour_is_made_of_are_refused(start, window_ms):
    for record in (release(start, window_ms=window_ms), marker(start, start + window_ms, window_ms)):
        with pytest.raises(IncompatibleError, match="does not fit into the hours of which days of UTC are made"):
            run_of(UTC, [record]).read()


def test_a_missing_marker_stops_the_roll_up():
    """Coverage would claim windows that nobody decided."""
    run = run_of(UTC, [closed(0, 4), closed(5, 8)])
    with pytest.raises(
        StateError, match=r"begins at 2026-01-01T\S+Z, the one before it ended at 2026-01-01T\S+Z; what lies between"
    ):
        run.read()


def test_markers_that_come_again_change_nothing():
    run = run_of(UTC, [closed(0, 1), closed(1, 2), closed(0, 1), *windows(2), closed(1, 2), closed(0, 2), closed(2, 4)])
    assert shown(run.finish()) == [("hour", 0, A, 1, 4, 4, True)]


@pytest.mark.parametrize("payload", [b"", b"garbage", b"\x93\x01\x02\x03"])
def test_garbage_is_not_swallowed(payload):
    with pytest.raises(FormatError):
        run_of(UTC, [payload]).read()


def test_an_unknown_version_is_not_swallowed():
    payload = bytearray(release(T0))
    payload[11] = 2
    with pytest.raises(FormatError, match="version: 2 is unknown"):
        run_of(UTC, [bytes(payload)]).read()


def test_a_roll_up_among_the_releases_is_refused():
    (hour,) = run_of(UTC, [*windows(0), closed(0, 4)]).finish()
    with pytest.raises(StateError, match="offset 0: a roll-up record where a release is expected"):
        run_of(UTC, [encode(hour)]).read()


# epochs


def test_two_epochs_in_one_hour_give_a_record_each_with_its_coverage():
    log = [
        *windows(0, 1),
        closed(0, 2),
        *windows(2, epoch=2, k=K + 1),
        closed(2, 4, epoch=2),
        closed(4, 96, epoch=2),
    ]
    published = run_of(UTC, log).finish()
    assert [(r.epoch, *row) for r, row in zip(published, shown(published), strict=True)] == [
        (1, "hour", 0, A, 2, 2, 4, True),
        (1, "day", 0, A, 2, 2, 96, True),
        (2, "hour", 0, A, 1, 2, 4, True),
        (2, "day", 0, A, 1, 94, 96, True),
    ]


def test_an_epoch_is_open_until_it_has_reached_the_next_one():
    log = [*windows(0), closed(0, 1), closed(3, 4, epoch=2), *windows(2), closed(1, 2)]
    run = run_of(UTC, log)
    assert run.finish() == []
    run.log.append(closed(2, 3))
    assert shown(run.finish()) == [("hour", 0, A, 2, 3, 4, True), ("day", 0, A, 2, 3, 96, True)]
    assert run.commit.offset == 6, "an old epoch does not hold replay back"


def test_an_old_epoch_that_went_on_by_a_provisional_record_gets_a_revision_of_its_own():
    run = run_of(UTC, [*windows(0), closed(0, 2)])
    (before, _) = run.finish(T0 + DAY_MS)
    run.log.append(closed(2, 3, epoch=2))
    (after, _) = run.finish()
    assert (before.complete, before.released, before.decided) == (False, 1, 2)
    assert (after.complete, after.released, after.decided) == (True, 1, 2)
    assert after.revision == before.revision + 1


# what has expired


def test_an_expired_span_is_published_as_it_stands_and_replaced_later():
    run = run_of(UTC, [*windows(0, 1), closed(0, 2)])
    (early,) = run.finish(T0 + HOUR_MS)
    assert shown([early]) == [("hour", 0, A, 2, 2, 4, False)]
    run.log += [*windows(2), closed(2, 4)]
    (full,) = run.finish(T0 + HOUR_MS)
    assert shown([full]) == [("hour", 0, A, 3, 4, 4, True)]
    assert place_of(early) == place_of(full)
    assert early.revision < full.revision


def test_an_expired_day_sums_final_and_open_hours():
    run = run_of(UTC, [*windows(0, 4), closed(0, 5), *windows(8)])
    published = run.finish(T0 + DAY_MS)
    assert shown(published) == [
        ("hour", 0, A, 1, 4, 4, True),
        ("hour", 1, A, 1, 1, 4, False),
        ("hour", 2, A, 1, 0, 4, False),
        ("day", 0, A, 3, 5, 96, False),
    ]
    assert published[3].tally == Tally.of(decode_release(run.log[n]).sketch for n in (0, 1, 3))


def test_only_spans_that_have_expired_are_published():
    run = run_of(UTC, [*windows(0, 4)])
    assert run.finish(T0 + HOUR_MS - 1) == []
    assert [r.window.end_ms for r in run.finish(T0 + HOUR_MS)] == [T0 + HOUR_MS]


@pytest.mark.parametrize("restarted", [False, True])
def test_what_has_not_changed_is_not_published_again(restarted):
    run = run_of(UTC, [*windows(0), *windows(0, key="b"), closed(0, 1)])
    assert len(run.finish(T0 + DAY_MS)) == 4
    if restarted:
        run.restart()
    assert run.finish(T0 + DAY_MS) == []
    run.log += windows(1, key="b")
    assert [(r.grain, r.key) for r in run.finish(T0 + DAY_MS)] == [("hour", B), ("day", B)]
    run.log += [closed(1, 2)]
    if restarted:
        run.restart()
    assert [(r.grain, r.key, r.decided) for r in run.finish(T0 + DAY_MS)] == [
        (grain, key, 2) for grain in ("hour", "day") for key in (A, B)
    ]


# restarts and transactions


def busy_log():
    """A day and some hours of two keys."""
    log = []
    for hour in range(30):
        low = 4 * hour
        log += [*windows(low), *windows(low + 2, key="b")][: 1 + hour % 2]
        log += [closed(low, low + 1), *windows(low + 3, key="b"), closed(low + 1, low + 4)]
    return log


@pytest.mark.parametrize("max_bytes", [1, 1000, 8 << 20])
def test_a_restart_at_every_commit_gives_the_same_bytes(max_bytes):
    whole = run_of(UTC, busy_log())
    whole.finish()
    run = run_of(UTC, busy_log(), max_bytes=max_bytes)
    while run.read(3):
        while (step := run.rollup.step()) is not None:
            run.take(step)
            run.restart()
            run.read(2)
    assert run.newest == whole.newest
    assert run.history == whole.history, "in the same order, and nothing twice"


def test_a_step_stays_the_same_until_it_is_committed():
    run = run_of(UTC, [*windows(0), *windows(0, key="b"), closed(0, 4)], max_bytes=1)
    run.read()
    first = run.rollup.step()
    assert run.rollup.step() is first
    assert len(first.publish) == 1
    assert run.rollup.checkpoint() is None, "not between two steps"
    with pytest.raises(StateError, match="not due"):
        run.rollup.committed(type(first)())
    run.take(first)
    with pytest.raises(StateError, match="not due"):
        run.rollup.committed(first)
    assert len(run.drain()) == 1


def test_half_an_hour_is_not_taken_for_a_whole_one_on_replay():
    """What is decided comes back with the markers that are read again, not before the releases in front of them."""
    run = run_of(UTC, [*windows(0, 1, 2), *windows(0, 1, 2, key="b"), closed(0, 4)], max_bytes=1)
    run.read()
    run.take(run.rollup.step())
    run.restart()
    assert run.at == 0
    run.read(4)
    assert run.rollup.step() is None
    assert [(r.key, r.released) for r in run.finish()] == [(B, 3)]


def test_replay_is_bounded_by_the_oldest_base_span_that_is_not_published():
    run = run_of(UTC, busy_log())
    while run.read(1):
        run.drain()
        run.checkpoint()
        assert run.at - run.commit.offset <= 6


def test_history_is_needed_for_open_days_only():
    run = run_of(UTC, [*busy_log(), *windows(121), closed(120, 122)])
    run.finish()
    run.checkpoint()
    other = Rollup("views", 0, UTC)
    asked = [decode(payload) for payload in run.history]
    kept = [r for r in asked if r.window.end_ms > T0 + DAY_MS]
    other.restore(run.commit, ())
    assert [r for r in asked if other.recalls(r.window.end_ms)] == kept != asked
    assert 0 < other.recalls_since_ms < min(r.window.end_ms for r in kept)

    filtered = Run(UTC, run.log)
    filtered.commit, filtered.history, filtered.newest = run.commit, [encode(r) for r in kept], dict(run.newest)
    filtered.restart()
    run.restart()
    for each in (run, filtered):
        each.log = [*each.log, closed(122, 96 * 2)]
    assert run.finish() == filtered.finish() != []


def test_history_of_an_ended_epoch_is_not_needed_for_ever():
    run = run_of(
        UTC, [*windows(0), closed(0, 2), *windows(2, epoch=2), closed(2, 96, epoch=2), closed(96, 97, epoch=2)]
    )
    run.finish()
    run.checkpoint()
    other = Rollup("views", 0, UTC)
    other.restore(run.commit, ())
    assert not other.recalls(T0 + HOUR_MS)
    assert not other.recalls(T0 + DAY_MS)
    assert other.recalls(T0 + DAY_MS + HOUR_MS)
    hours = range(T0 - 3 * DAY_MS, T0 + 3 * DAY_MS, HOUR_MS)
    assert other.recalls_since_ms < min(end for end in hours if other.recalls(end))


def test_records_of_the_history_that_are_there_twice_are_counted_once():
    run = run_of(UTC, [*windows(0), closed(0, 4)])
    run.finish()
    run.checkpoint()
    run.history *= 2
    run.restart()
    run.log.append(closed(4, 96))
    (day,) = run.finish()
    assert (day.grain, day.released) == ("day", 1)


def test_a_position_older_than_the_history_makes_the_same_records_again():
    """As when positions come back from a backup: hours that are made again must not be in their day twice."""
    run = run_of(UTC, [*windows(0), closed(0, 4), *windows(4), closed(4, 8)])
    run.read(2)
    run.drain()
    older = run.commit
    run.finish()
    whole = run_of(UTC, [*run.log, closed(8, 96)])
    whole.finish()
    again = Rollup("views", 0, UTC)
    made = []
    for offset in range(again.restore(older, run.history), len(whole.log)):
        again.add(offset, whole.log[offset])
    while (step := again.step()) is not None:
        made += [record.value for record in step.publish]
        again.committed(step)
    assert made == whole.history[1:]


def test_what_is_published_does_not_expire_while_it_is_read_again():
    """An epoch that is still open holds replay back, so that hours of the next one are met again."""
    run = run_of(UTC, [*windows(0), closed(0, 1), *windows(4, epoch=2), closed(4, 8, epoch=2)])
    assert [(r.epoch, r.complete) for r in run.finish()] == [(2, True)]
    run.restart()
    run.read(3)
    run.rollup.expire(T0 + 2 * HOUR_MS)
    assert [(r.epoch, r.complete) for r in run.drain()] == [(1, False)]
    assert run.rollup.seen.already_final == 1


def test_the_first_start_reads_from_the_beginning():
    assert Rollup("views", 0, UTC).restore(None, ()) == 0
    assert Rollup("views", 0, UTC).recalls(T0) is False


def test_a_committed_state_of_another_zone_is_refused():
    run = run_of(UTC, [*windows(0), closed(0, 4)])
    run.finish()
    with pytest.raises(StateError, match=r"rollup\.zone is Asia/Kathmandu, the roll-ups so far are of UTC"):
        Rollup("views", 0, KATHMANDU).restore(run.commit, run.history)


@pytest.mark.parametrize("metadata", [b"", b"{}", b"[9]", b'[9,"UTC",3,[]]', b'[1,"UTC",2,[]]', b"\xff"])
def test_a_committed_state_that_cannot_be_read_is_refused(metadata):
    with pytest.raises(StateError, match=r"^roll-up of partition 0: .*committed state"):
        Rollup("views", 0, UTC).restore(Commit(0, 3, metadata), ())


def test_the_committed_state_is_what_was_known_at_its_offset():
    run = run_of(UTC, [*windows(0), closed(0, 4), *windows(4), closed(4, 5), closed(5, 6), *windows(5)])
    run.finish()
    run.checkpoint()
    state = decode_rollup_state(run.commit)
    (epoch,) = state.epochs
    assert (state.offset, epoch.from_ms, epoch.through_ms) == (2, T0, quarter(4))
    assert (epoch.cursor.end_ms, epoch.cursor.key) == (quarter(4), None)


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
