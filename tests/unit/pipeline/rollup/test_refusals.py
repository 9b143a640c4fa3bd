"""What a roll-up keeps out of its sums, and what stops it."""

import pytest
from support.rollup_cases import T0, UTC, A, closed, quarter, shown, windows
from support.rollup_runs import (
    HOUR_MS,
    QUARTER_MS,
    K,
    bits_of,
    marker,
    release,
    run_of,
)

from sfm_stream.errors import FormatError, IncompatibleError, StateError
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.wire.codec import decode_release, encode


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
    """The day is rebuilt from its releases: a sketch of another kind must not be added to it."""
    other = {"shape": SHAPES["shape"], "hash": "other", "flip probability k": K + 1, "privacy unit": "blanked"}[name]
    run = run_of(UTC, [*windows(0), closed(0, 4)])
    run.finish()
    run.checkpoint()
    run.restart()
    assert run.at == 0
    run.read()
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
    payload[11] = 4
    with pytest.raises(FormatError, match="version: 4 is unknown"):
        run_of(UTC, [bytes(payload)]).read()


def test_a_roll_up_among_the_releases_is_refused():
    (hour,) = run_of(UTC, [*windows(0), closed(0, 4)]).finish()
    with pytest.raises(StateError, match="offset 0: a roll-up record where a release is expected"):
        run_of(UTC, [encode(hour)]).read()
