"""What an answer is worth whose windows are not all in it: a lower bound, wherever the reader cannot know better."""

from __future__ import annotations

import math

import pytest
from support.memory_topics import Topics
from support.published_topics import T0, VIEWS, closed, question, rolled, sketched, span
from support.rollup_runs import DAY_MS, QUARTER_MS, marker

from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.rows import rows_of
from sfm_stream.errors import UsageError
from sfm_stream.estimation.estimate import Estimate, Status, lower_bound, sum_disjoint
from sfm_stream.pipeline.rollup.coverage import Absence, rollup_estimate
from sfm_stream.wire.codec import decode_rollup

WITHHELD, PRESENCE = Absence(), Absence(1)


def unions(records, absence, low=0, high=4):
    return list(rows_of(Topics(records), ReleaseTerms("views", absence), question("range", span(low, high))))


def hours(records, absence, expire_ms=None):
    topics = Topics(rollups=rolled(records, expire_ms))
    return list(rows_of(topics, ReleaseTerms("views", absence), question("hour")))


@pytest.mark.parametrize("rows", [unions, hours])
def test_a_window_without_a_release_makes_a_lower_bound_unless_it_is_known_to_be_empty(rows):
    whole = [*(sketched(n) for n in range(4)), closed(0, 4)]
    for absence in (WITHHELD, PRESENCE):
        (row,) = rows(whole, absence)
        assert (row.estimate.status, row.released, row.windows) == (Status.OK, 4, 4)
        assert math.isfinite(row.estimate.high)
    (bound,), (exact,) = (rows([*whole[:2], *whole[3:]], absence) for absence in (WITHHELD, PRESENCE))
    assert (exact.estimate.status, exact.released, exact.complete) == (Status.OK, 3, True)
    assert (bound.estimate.status, bound.estimate.high) == (Status.LOWER_BOUND, math.inf)
    same = ("value", "low", "standard_error", "unclamped")
    assert all(getattr(bound.estimate, name) == getattr(exact.estimate, name) for name in same)
    assert bound.released == 3
    assert bound.complete


@pytest.mark.parametrize("rows", [unions, hours])
def test_windows_that_nobody_decided_are_missing_whatever_the_rule(rows):
    """Counting began inside the span."""
    late = [sketched(2), sketched(3), closed(2, 4)]
    for absence in (WITHHELD, PRESENCE):
        (row,) = rows(late, absence)
        assert (row.estimate.status, row.released, row.windows, row.complete) == (Status.LOWER_BOUND, 2, 4, True)


def test_what_is_open_is_a_lower_bound():
    (row,) = unions([sketched(0), sketched(1), closed(0, 2)], PRESENCE)
    assert (row.estimate.status, row.complete) == (Status.LOWER_BOUND, False)
    (row,) = hours([sketched(0), sketched(1), closed(0, 2)], PRESENCE, T0 + DAY_MS)
    assert (row.estimate.status, row.complete) == (Status.LOWER_BOUND, False)


def test_the_rule_is_known_of_the_epoch_of_the_configuration_only():
    records = [sketched(0), closed(0, 2), sketched(2, epoch=2), closed(2, 4, epoch=2)]
    for absence in (Absence(1), Absence(2), WITHHELD):
        (row,) = unions(records, absence)
        assert (row.estimate.status, row.released, row.windows) == (Status.LOWER_BOUND, 2, 4)
    records.insert(1, sketched(1))
    (known,), (unknown,) = (unions(records, absence) for absence in (Absence(2), Absence(1)))
    assert (known.estimate.status, unknown.estimate.status) == (Status.OK, Status.LOWER_BOUND)


def test_an_epoch_without_the_key_is_empty_once_all_of_its_partitions_have_decided():
    """In which of them the key would be is not known."""
    first = [sketched(0), sketched(1), closed(0, 2)]
    one, other = (closed(2, 4, epoch=2, partition=p, partitions=2) for p in (0, 1))
    (part,), (whole,) = (unions([*first, *markers], Absence(2)) for markers in ([one], [one, other]))
    assert (part.estimate.status, whole.estimate.status) == (Status.LOWER_BOUND, Status.OK)


def test_a_window_is_empty_once_the_partition_of_the_key_has_decided_it():
    markers = [closed(0, high, partition=partition, partitions=2) for partition, high in ((0, 2), (1, 4))]
    for partition, status in ((0, Status.LOWER_BOUND), (1, Status.OK)):
        (row,) = unions([sketched(0, partition=partition, partitions=2), *markers], PRESENCE)
        assert (row.estimate.status, row.complete) == (status, partition == 1)


def test_windows_of_two_sizes_are_counted_each_in_its_own():
    records = [sketched(n) for n in range(4)] + [closed(0, 4)]
    start_ms = T0 + 4 * QUARTER_MS
    long = sketched(4, epoch=2, window_ms=4 * QUARTER_MS)
    records += [long, marker(start_ms, start_ms + 4 * QUARTER_MS, 4 * QUARTER_MS, epoch=2)]
    (row,) = unions(records, WITHHELD, 0, 8)
    assert (row.released, row.windows, row.estimate.status) == (5, 5, Status.OK)
    (row,) = unions(records, WITHHELD, 0, 4)
    assert (row.released, row.windows, row.estimate.status) == (4, 4, Status.OK)


@pytest.mark.parametrize(("low", "high"), [(4, 6), (5, 8), (0, 7), (6, 9)])
@pytest.mark.parametrize("withheld", [False, True])
def test_a_span_that_cuts_a_window_of_another_epoch_is_refused(low, high, withheld):
    start_ms = T0 + 4 * QUARTER_MS
    records = [sketched(0), closed(0, 4), marker(start_ms, start_ms + 4 * QUARTER_MS, 4 * QUARTER_MS, epoch=2)]
    records += [] if withheld else [sketched(4, epoch=2, window_ms=4 * QUARTER_MS)]
    with pytest.raises(UsageError, match="inside a window of epoch 2, which begins at 2026-01-01T01:00:00Z and ends"):
        unions(records, WITHHELD, low, high)
    with pytest.raises(UsageError, match="inside a window of epoch 2"):
        list(rows_of(Topics(records), VIEWS, question("window", span(low, high))))


def test_a_single_window_is_never_a_bound():
    (row,) = rows_of(Topics([sketched(0), closed(0, 4)]), VIEWS, question("window"))
    assert row.estimate.status is Status.OK


def test_published_bytes_do_not_change():
    """The record says what its releases say; the reader makes a bound of it."""
    (hour,) = (r for r in map(decode_rollup, rolled([sketched(0), closed(0, 4)])) if r.grain == "hour")
    assert hour.status == "ok"
    assert math.isfinite(hour.high)
    assert rollup_estimate(hour, WITHHELD).status is Status.LOWER_BOUND
    assert rollup_estimate(hour, PRESENCE).status is Status.OK


@pytest.mark.parametrize("status", [Status.SATURATED, Status.UNINFORMATIVE])
def test_what_claims_no_upper_end_keeps_its_status(status):
    found = Estimate(5.0, 1.0, 0.0, math.inf, status)
    assert lower_bound(found) == found


def test_a_sum_with_a_bound_is_a_bound():
    bound = lower_bound(Estimate(100.0, 10.0, 80.0, 120.0, Status.OK, unclamped=100.0))
    found = sum_disjoint([bound, Estimate(50.0, 10.0, 30.0, 70.0, Status.OK, unclamped=50.0)])
    assert (found.value, found.low, found.high, found.status) == (150, 110, math.inf, Status.LOWER_BOUND)
