"""Covers by the coarsest releases, against sets of quarters of an hour."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_cover import naive_cover, naive_fill, naive_gaps

from sfm_stream.answers.cover import Candidate, cover, gaps, parts, windows_to_fill
from sfm_stream.answers.widest_cover import widest_cover
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import Window
from sfm_stream.units import QUARTER_MS
from sfm_stream.windows.grid import FixedGrid

SHAPE, SMALL = SketchShape(64, 8), SketchShape(16, 4)
SIZES = {1: "15m", 4: "hour", 12: "half-day", 24: "day", 31: "month"}
"""In quarters, so that a span of a few of the longest is small; the last one is aligned to none of the others."""
LONGEST = 96


def candidate(start, size, epoch=1, partition=0, shape=SHAPE):
    window = Window(start * QUARTER_MS, (start + size) * QUARTER_MS)
    return Candidate(window, epoch, partition, SIZES[size], shape, "xxh64")


def quarters(windows):
    return [(window.start_ms // QUARTER_MS, window.end_ms // QUARTER_MS) for window in windows]


def cover_of(*candidates):
    return quarters(each.window for each in cover(candidates))


ALIGNED = st.sampled_from(sorted(SIZES)).flatmap(
    lambda size: st.integers(0, LONGEST // size - 1).map(lambda number: (number * size, size))
)
GIVEN = st.lists(ALIGNED, max_size=60)


@settings(max_examples=300)
@given(GIVEN, st.randoms(use_true_random=False))
def test_a_cover_is_disjoint_greedy_and_maximal_and_does_not_hang_on_the_order(given_windows, random):
    candidates = [candidate(*window) for window in set(given_windows)]
    random.shuffle(candidates)
    found = cover_of(*candidates)
    assert found == sorted(found)
    used = [quarter for window in found for quarter in range(*window)]
    assert len(used) == len(set(used)), "disjoint in time"
    for start, size in given_windows:
        assert (start, start + size) in found or set(used) & set(range(start, start + size)), "nothing more fits"
    assert found == naive_cover([(start, start + size) for start, size in given_windows], 0, LONGEST)


@settings(max_examples=300)
@given(GIVEN)
def test_the_cover_of_all_is_that_of_each_part(given_windows):
    candidates = sorted(candidate(*window) for window in set(given_windows))
    found = list(parts(candidates))
    assert [each for part in found for each in part] == candidates
    assert all(max(e.window.end_ms for e in one) <= other[0].window.start_ms for one, other in pairwise(found))
    assert tuple(each for part in found for each in cover(part)) == cover(candidates)


@settings(max_examples=300)
@given(GIVEN, st.integers(0, LONGEST), st.integers(0, LONGEST))
def test_gaps_and_windows_make_up_the_span(given_windows, low, high):
    windows = [(start, start + size) for start, size in given_windows]
    span = Window(low * QUARTER_MS, high * QUARTER_MS)
    between = quarters(gaps(span, [Window(a * QUARTER_MS, b * QUARTER_MS) for a, b in windows]))
    assert [quarter for gap in between for quarter in range(*gap)] == sorted(naive_gaps(windows, low, high))
    assert all(one[1] < other[0] for one, other in pairwise(between)), "each as long as it can be"


@settings(max_examples=300)
@given(st.integers(0, LONGEST), st.integers(0, LONGEST), st.sampled_from([(1,), (4, 1), (24, 4, 1), (24, 1), (12, 4)]))
def test_a_gap_is_filled_by_the_coarsest_windows(low, high, sizes):
    gap = Window(low * QUARTER_MS, high * QUARTER_MS)
    filled = windows_to_fill(gap, [FixedGrid(size * QUARTER_MS) for size in sizes])
    assert filled == naive_fill(set(range(low, high)), sizes)


def test_the_longest_goes_first_wherever_it_lies():
    """The month overlaps the second day: the day gives way, and what the month leaves free is filled by less."""
    days, month = [candidate(0, 24), candidate(24, 24)], candidate(31, 31)
    hours = [candidate(4 * hour, 4) for hour in range(16)]
    assert cover_of(*days, month, *hours) == [(0, 24), (24, 28), (31, 62)]


def test_of_one_window_in_two_epochs_the_newer_is_taken_and_of_two_partitions_both():
    two_epochs = cover([candidate(0, 4, epoch=1), candidate(0, 4, epoch=2), candidate(4, 4, epoch=1)])
    assert [(each.window.start_ms // QUARTER_MS, each.epoch) for each in two_epochs] == [(0, 2), (4, 1)]
    two_partitions = cover([candidate(0, 4, partition=1), candidate(0, 4), candidate(1, 1, partition=1)])
    assert [(each.partition, each.span) for each in two_partitions] == [(0, "hour"), (1, "hour")]


def test_of_several_shapes_the_one_that_takes_in_most_time_is_taken():
    """Days have a shape of their own: the cover of whole days is theirs, with half days at its ends the hours'."""
    hours = [candidate(4 * hour, 4, shape=SMALL) for hour in range(18)]
    days = [candidate(24 * day, 24) for day in range(3)]

    def spans(*candidates):
        in_order = sorted(candidates, key=lambda each: each.window)
        return [each.span for part in widest_cover("views", lambda: in_order) for each in part]

    assert spans(*hours, *days) == ["day"] * 3
    assert set(spans(*hours[3:], *days[1:])) == {"hour"}
    assert set(spans(*hours[7:], *days[1:])) == {"day"}
