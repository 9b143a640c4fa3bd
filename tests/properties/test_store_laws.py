"""Every order and every batching of the same rows gives the same cells, as plain sets have them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_windows import naive_cells

from sfm_stream.sketch.shape import SketchShape
from sfm_stream.windows import store as store_module
from sfm_stream.windows.store import OpenWindow, WindowStore

KINDS = [np.int64, np.int32, np.uint32]
"""Of a column of window starts, of key ids, of cells."""
SHAPES = [SketchShape(16, 2), SketchShape(64, 8), SketchShape(4096, 24)]


@st.composite
def streams(draw):
    """A shape, rows (window start, key id, cell), and where they are cut into batches."""
    shape = draw(st.sampled_from(SHAPES))
    dense = st.integers(0, min(shape.cells, 200) - 1)
    cell = st.one_of(dense, st.integers(0, shape.cells - 1))
    row = st.tuples(st.sampled_from([10, 20, 40]), st.sampled_from([0, 1, 2, 7, 2**31 - 1]), cell)
    rows = draw(st.lists(row, max_size=150))
    return shape, rows, draw(st.lists(st.integers(0, len(rows)), max_size=6))


def stored(shape, rows, cuts=()):
    store = WindowStore(shape)
    places = [0, *sorted(cuts), len(rows)]
    for low, high in pairwise(places):
        part = rows[low:high]
        store.add(
            np.array([row[0] for row in part], np.int64),
            np.array([row[1] for row in part], np.int32),
            np.array([row[2] for row in part], np.uint32),
            np.arange(low, high),
        )
    return store


def contents(store):
    found = {}
    for start in store.starts():
        window = store.get(start)
        bitmaps = window.cells_by_key(window.shape)
        found[start] = {
            key: set(np.flatnonzero(np.unpackbits(bitmaps.bits(key), bitorder="little")).tolist())
            for key in window.key_ids().tolist()
        }
    return found


@pytest.mark.parametrize(("queue", "piece"), [(0, 1), (3, 2), (40, 7), (1 << 16, 1 << 13)])
@settings(max_examples=60)
@given(stream=streams(), order=st.randoms(use_true_random=False))
def test_any_order_and_batching_gives_the_sets(queue, piece, stream, order):
    """However many rows wait, and however few cells are merged at a time."""
    shape, rows, cuts = stream
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "_QUEUE_MIN", queue)
        patch.setattr(store_module, "_ROWS_A_VISIT", min(queue, 128))
        patch.setattr(store_module, "_PIECE", piece)
        store = stored(shape, rows, cuts)
        assert contents(store) == naive_cells(rows)
        firsts = {start: min(i for i, row in enumerate(rows) if row[0] == start) for start in store.starts()}
        assert {start: store.get(start).first_offset for start in store.starts()} == firsts
        assert store.first_offset() == min(firsts.values(), default=None)
        assert store.live_keys().tolist() == sorted({row[1] for row in rows})
        shuffled = rows[:]
        order.shuffle(shuffled)
        again = stored(shape, shuffled, cuts)
        assert contents(again) == contents(store)
        assert again.raw_bytes() == store.raw_bytes()


@settings(max_examples=60)
@given(stream=streams(), looks=st.lists(st.integers(0, 150), max_size=3))
def test_looking_in_between_changes_nothing(stream, looks):
    """key_ids() sorts the queue in; when that happens must not matter."""
    shape, rows, cuts = stream
    store = WindowStore(shape)
    for i, (start, key, cell) in enumerate(rows):
        store.add(np.array([start]), np.array([key], np.int32), np.array([cell], np.uint32), np.array([i]))
        if i in looks:
            store.live_keys()
    assert contents(store) == contents(stored(shape, rows, cuts))


ROWS = st.lists(st.tuples(st.sampled_from([10, 20, 40]), st.integers(0, 3), st.integers(0, 24)), max_size=12)
STARTS = st.sampled_from([10, 20, 40])
ACTIONS = st.one_of(
    st.tuples(st.just("add"), ROWS),
    st.tuples(st.just("absorb"), STARTS, ROWS),
    st.tuples(st.sampled_from(["get", "drop"]), STARTS),
    st.tuples(st.sampled_from(["live", "compact"])),
)


@pytest.mark.parametrize(("queue", "piece"), [(0, 1), (5, 3), (1 << 16, 1 << 13)])
@settings(max_examples=80)
@given(actions=st.lists(ACTIONS, max_size=25))
def test_whatever_is_done_in_between_the_store_holds_what_it_was_given_and_knows_its_bytes(queue, piece, actions):
    """Windows that are looked at, absorb finer ones and are dropped, while rows of others wait."""
    held: dict[int, dict[int, set[int]]] = {}
    firsts: dict[int, int] = {}
    store, offset = WindowStore(SHAPES[1]), 100
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "_QUEUE_MIN", queue)
        patch.setattr(store_module, "_ROWS_A_VISIT", queue)
        patch.setattr(store_module, "_PIECE", piece)
        for action, *given_ in actions:
            rows = given_[-1] if action in ("add", "absorb") else []
            if action == "absorb":
                rows = [(given_[0], key, cell) for _, key, cell in rows]
            for place, (start, key, cell) in enumerate(rows):
                held.setdefault(start, {}).setdefault(key, set()).add(cell)
                firsts.setdefault(start, offset + place)
            columns = [np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), KINDS, strict=False)]
            if action == "add" and rows:
                store.add(*columns, np.arange(offset, offset + len(rows)))
            elif action == "absorb" and rows:
                finer = OpenWindow(SHAPES[1], offset)
                finer.add(*columns[1:])
                store.absorb(given_[0], finer)
            elif action == "get" and (window := store.get(given_[0])) is not None:
                assert window.key_ids().tolist() == sorted(held[given_[0]])
            elif action == "drop":
                store.drop(given_[0])
                held.pop(given_[0], None)
                firsts.pop(given_[0], None)
            elif action == "live":
                assert store.live_keys().tolist() == sorted({key for keys in held.values() for key in keys})
            elif action == "compact":
                store.compact()
            offset += len(rows)
            known = sum(window.raw_bytes for window in store._windows.values()) + 16 * store._queued
            assert store.raw_bytes() == known
            assert store.starts() == sorted(held)
            assert {start: store.first_offset_of(start) for start in held} == firsts
        assert contents(store) == held
