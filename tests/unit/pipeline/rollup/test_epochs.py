"""Epochs that meet in one span, and spans that are published before they are final."""

import pytest
from support.rollup_cases import T0, UTC, A, B, closed, shown, windows
from support.rollup_runs import (
    DAY_MS,
    HOUR_MS,
    K,
    place_of,
    run_of,
)

from sfm_stream.sketch.tally import Tally
from sfm_stream.wire.codec import decode_release

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
