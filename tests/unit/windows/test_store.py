"""The columnar window store against plain sets: representation, borders of compaction, key ids, memory."""

import gc
import tracemalloc
from sys import getsizeof

import numpy as np
import pytest
from reference.naive_windows import naive_cells

from sfm_stream.events.key_table import KeyTable
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.windows import store as store_module
from sfm_stream.windows.store import OpenWindow, WindowStore

SMALL, MIDDLE, LARGE = SketchShape(16, 2), SketchShape(64, 8), SketchShape(4096, 24)
QUEUE = store_module._QUEUE_MIN


def ids(*values):
    return np.array(values, np.int32)


def cells(*values):
    return np.array(values, np.uint32)


def lit(window, key_id):
    return set(
        np.flatnonzero(np.unpackbits(window.cells_by_key(window.shape).bits(key_id), bitorder="little")).tolist()
    )


def contents(store):
    return {
        start: {key: lit(store.get(start), key) for key in store.get(start).key_ids().tolist()}
        for start in store.starts()
    }


def test_a_new_store_is_empty():
    store = WindowStore(SMALL)
    assert store.starts() == []
    assert store.get(0) is None
    assert store.first_offset() is None
    assert store.live_keys().tolist() == []
    assert store.live_keys().dtype == np.int32
    assert store.raw_bytes() == 0


def test_no_rows_open_no_window():
    store = WindowStore(SMALL)
    store.add(np.empty(0, np.int64), ids(), cells(), np.empty(0, np.int64))
    assert store.starts() == []


def test_rows_of_several_windows_in_one_call():
    rows = [(20, 3, 1), (10, 3, 1), (20, 3, 1), (20, 0, 31), (10, 2, 0), (30, 3, 5)]
    store = WindowStore(SMALL)
    starts, keys, lit_cells = (np.array(column) for column in zip(*rows, strict=True))
    store.add(starts, keys.astype(np.int32), lit_cells.astype(np.uint32), np.arange(100, 106))
    assert contents(store) == naive_cells(rows)
    assert store.starts() == [10, 20, 30]
    assert [store.get(start).first_offset for start in store.starts()] == [101, 100, 105]
    assert store.first_offset() == 100
    assert store.live_keys().tolist() == [0, 2, 3]


def test_the_first_offset_of_a_window_stays():
    store = WindowStore(SMALL)
    for offset in (7, 9, 50):
        store.add(np.array([10]), ids(0), cells(offset % 32), np.array([offset]))
    assert store.get(10).first_offset == store.first_offset() == 7


def test_a_dropped_window_is_gone_with_its_keys_and_its_offset():
    store = WindowStore(SMALL)
    store.add(np.array([10, 20, 20]), ids(0, 1, 2), cells(1, 2, 3), np.array([5, 6, 7]))
    store.drop(10)
    assert (store.starts(), store.first_offset(), store.live_keys().tolist()) == ([20], 6, [1, 2])
    store.drop(10)
    store.drop(20)
    assert (store.starts(), store.first_offset(), store.raw_bytes()) == ([], None, 0)


@pytest.mark.parametrize("shape", [SMALL, MIDDLE, LARGE], ids=str)
@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_a_key_moves_into_a_bitmap_exactly_where_its_cells_take_more_room(shape, beyond):
    """Nothing about the content shows the move; neighbours in the sparse array stay what they are."""
    count = shape.nbytes // 4 + beyond
    window = OpenWindow(shape, 0)
    wanted = {1: {0}, 5: set(range(0, 2 * count, 2)), 9: {shape.cells - 1}}
    for key, places in wanted.items():
        window.add(np.full(len(places), key, np.int32), np.array(sorted(places), np.uint32))
    assert window.key_ids().tolist() == [key for key in wanted if wanted[key]]
    assert {key: lit(window, key) for key in wanted} == wanted
    assert (5 in window._bitmaps) == (beyond > 0)
    held = 4 * sum(map(len, wanted.values())) + 8 * sum(map(bool, wanted.values()))
    assert window.raw_bytes == (held if beyond <= 0 else 2 * (4 + 4 + 4) + shape.nbytes)
    assert lit(window, 4) == lit(window, 10) == set()


def test_a_key_that_grows_moves_once_and_goes_on_growing():
    window = OpenWindow(MIDDLE, 0)
    wanted = set()
    for cell in range(0, MIDDLE.cells, 3):
        window.add(ids(2, 2, 7), cells(cell, cell, 11))
        wanted.add(cell)
        if cell % 30 == 0:
            assert window.key_ids().tolist() == [2, 7]
    assert lit(window, 2) == wanted
    assert lit(window, 7) == {11}
    assert set(window._bitmaps) == {2}
    assert window.raw_bytes == MIDDLE.nbytes + 12


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_the_queue_is_sorted_in_exactly_beyond_its_bound(extra):
    window = OpenWindow(LARGE, 0)
    count = QUEUE + extra
    window.add(np.arange(count, dtype=np.int32) % 100, np.arange(count, dtype=np.uint32) % 60)
    assert window._queued == (0 if extra > 0 else count)
    before = window.raw_bytes
    assert before == (100 * 8 + 300 * 4 if extra > 0 else 8 * count)
    assert window.key_ids().tolist() == list(range(100))
    assert all(lit(window, key) == {cell for cell in range(60) if cell % 20 == key % 20} for key in range(100))
    assert window.raw_bytes == 100 * 8 + 300 * 4


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_rows_of_several_windows_are_sorted_in_exactly_beyond_the_bound_of_the_store(extra):
    store, count = WindowStore(LARGE), QUEUE + extra
    places = np.arange(count)
    store.add(places % 2 * 10, np.zeros(count, np.int32), (places % 60).astype(np.uint32), places)
    assert store._queued == (0 if extra > 0 else count)
    assert store.raw_bytes() == (8 if extra > 0 else 16) * count
    assert contents(store) == {10 * odd: {0: set(range(odd, 60, 2))} for odd in (0, 1)}


def test_a_window_that_stays_keeps_no_rows_of_those_that_were_dropped():
    """Rows that were sorted by window together lie in one column; a window holds its own part of it alone."""
    count = 100_000
    gc.collect()
    tracemalloc.start()
    try:
        store = WindowStore(LARGE)
        starts = np.where(np.arange(count) < 10, 20, 10)
        store.add(starts, np.arange(count, dtype=np.int32), np.zeros(count, np.uint32), np.arange(count))
        del starts
        store.drop(10)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert store.live_keys().tolist() == list(range(10))
    assert held < count, held


def test_a_large_window_lets_its_queue_grow_with_it(monkeypatch):
    """A sort of everything is paid for by a quarter of it in new rows."""
    monkeypatch.setattr(store_module, "_QUEUE_MIN", 4)
    window = OpenWindow(LARGE, 0)
    window.add(np.arange(800, dtype=np.int32), np.zeros(800, np.uint32))
    assert (window._queued, len(window._cells)) == (0, 800)
    window.add(np.arange(200, dtype=np.int32), np.ones(200, np.uint32))
    assert window._queued == 200
    window.add(ids(0), cells(2))
    assert (window._queued, len(window._cells)) == (0, 1001)


def test_reading_a_window_changes_nothing():
    window = OpenWindow(SMALL, 0)
    window.add(ids(1, 2, 2), cells(3, 4, 5))
    first = [window.cells_by_key(window.shape).bits(key).tobytes() for key in range(4)]
    assert [window.cells_by_key(window.shape).bits(key).tobytes() for key in range(4)] == first
    window.add(ids(1), cells(31))
    assert lit(window, 1) == {3, 31}


@pytest.mark.parametrize(
    "key_of", [lambda i: f"key-{i:08d}", lambda i: i + 10**9, lambda i: (f"a{i}", i)], ids=["text", "integer", "pair"]
)
def test_an_open_key_of_ten_items_takes_at_most_150_bytes_beside_itself(kernel, key_of):
    """100,000 keys, key table and window together, after the queue is sorted in. The compiled table has the key too."""
    keys, rng = [key_of(i) for i in range(100_000)], np.random.default_rng(1)
    gc.collect()
    tracemalloc.start()
    try:
        table, store = KeyTable(), WindowStore(LARGE)
        numbers = np.array([table.intern(key) for key in keys], np.int32)
        for _ in range(10):
            store.add(
                np.zeros(len(keys), np.int64),
                numbers,
                rng.integers(0, LARGE.cells, len(keys)).astype(np.uint32),
                np.arange(len(keys)),
            )
        assert len(store.live_keys()) == len(keys)
        del numbers
        gc.collect()
        per_key = (tracemalloc.get_traced_memory()[0] + getsizeof(table.index)) / len(keys)
    finally:
        tracemalloc.stop()
    assert store.raw_bytes() / len(keys) == pytest.approx(48, abs=0.1)
    assert 48 < per_key <= 150, per_key


def test_looking_up_one_key_of_a_large_window_copies_no_column():
    """Memory shows it: no look-up takes as much as a column of the keys."""
    keys = np.arange(300_000, dtype=np.int32)
    window = OpenWindow(SMALL, 0)
    window.add(keys, np.zeros(len(keys), np.uint32))
    held = window.cells_by_key(SMALL)
    tracemalloc.start()
    try:
        for key_id in (0, 150_000, 299_999, 300_000):
            held.bits(key_id)
        window.cells_by_key(SMALL).bits(7)
        window.key_ids()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < keys.nbytes / 10, peak
