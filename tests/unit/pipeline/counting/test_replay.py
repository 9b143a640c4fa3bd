"""Where replay begins: at the first record of the oldest window still open, with the clock before that record."""

from __future__ import annotations

import numpy as np
from reference.naive_windows import Row
from support.counting_runs import SMALL, columns_of

from sfm_stream.events.key_table import KeyTable
from sfm_stream.pipeline.counting.replay import ReplayPoint, ReplayPoints
from sfm_stream.windows.store import WindowStore

HERE = ReplayPoint(900, 90)


def noted(*batches, clock_ms=-1):
    """Points after batches of (offset, time) in windows of 10; the clock is the largest time."""
    store, points, keys = WindowStore(SMALL), ReplayPoints(), KeyTable()
    for batch in batches:
        columns = columns_of([Row(offset, time, time, "a", 1) for offset, time in batch], keys)
        clocks = np.maximum(np.maximum.accumulate(columns.arrival_ms), clock_ms)
        store.add(columns.event_ms - columns.event_ms % 10, columns.key_ids, columns.cells, columns.offsets)
        points.note(store, columns, clocks, clock_ms)
        clock_ms = int(clocks[-1])
    return points


def test_without_an_open_window_replay_begins_here():
    assert ReplayPoints().earliest(0, HERE) == HERE
    assert noted([(100, 5)]).earliest(10, HERE) == HERE, "the only window is closed"


def test_the_clock_is_that_before_the_first_record_of_the_window():
    points = noted([(100, 25), (110, 5), (120, 15)], [(130, 31), (140, 38)], clock_ms=3)
    assert points.earliest(0, HERE) == ReplayPoint(100, 3), "the first row: the clock before the batch"
    assert points.earliest(30, HERE) == ReplayPoint(130, 25), "the first row of a later batch"
    assert noted([(100, 5), (110, 25), (120, 15)]).earliest(10, HERE) == ReplayPoint(110, 5), "inside a batch"


def test_the_smallest_offset_of_all_open_windows_counts():
    """Window 20 began before window 10."""
    assert noted([(100, 25), (110, 15)]).earliest(10, HERE).offset == 100


def test_later_records_of_a_window_do_not_move_its_point():
    assert noted([(100, 5)], [(101, 6)], [(102, 7)]).earliest(0, HERE) == ReplayPoint(100, -1)


def test_points_of_closed_windows_are_forgotten():
    points = noted([(100, 5), (110, 15)])
    points.forget(10)
    assert points.earliest(0, HERE) == ReplayPoint(110, 5)
