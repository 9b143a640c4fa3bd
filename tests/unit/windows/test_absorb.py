"""A coarser window that absorbs finer ones holds the union of their cells, in whichever form each holds them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfm_stream.sketch.shape import SketchShape
from sfm_stream.windows import store as store_module
from sfm_stream.windows.store import OpenWindow, WindowStore

SHAPE = SketchShape(16, 8)
"""16 bytes: a key with more than 4 cells has a bitmap."""
CELLS = st.sets(st.integers(0, SHAPE.cells - 1), min_size=1, max_size=9)
PAIRS = st.dictionaries(st.integers(0, 4), CELLS, max_size=4).map(
    lambda cells_of: [(key, cell) for key, cells in cells_of.items() for cell in sorted(cells)]
)
"""With and without bitmaps in about equal parts."""


def filled(pairs, compact):
    window = OpenWindow(SHAPE, 0)
    if pairs:
        window.add(np.array([key for key, _ in pairs], np.int32), np.array([cell for _, cell in pairs], np.uint32))
    if compact:
        window.compact()
    return window


def held(window):
    cells = window.cells_by_key(SHAPE)
    keys = window.key_ids().tolist()
    return {k: set(np.flatnonzero(np.unpackbits(cells.bits(k), bitorder="little")).tolist()) for k in keys}


def plain(*lists):
    return {key: {cell for pairs in lists for k, cell in pairs if k == key} for pairs in lists for key, _ in pairs}


@given(PAIRS, st.lists(PAIRS, max_size=4), PAIRS, st.booleans(), st.booleans(), st.sampled_from([1, 4, 1 << 14]))
@example([(1, 0), (1, 1), (2, 3), (3, 4)], [[(1, cell) for cell in range(5, 11)]], [], True, False, 1 << 14)
def test_it_holds_the_union(first, finer, late, compact, twice, slice_cells):
    """Whether or not it was read before, and however many cells are taken at a time."""
    window = filled(first, compact)
    if compact:
        assert held(window) == plain(first)
    sources = [filled(pairs, not compact) for pairs in finer]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "_QUEUE_MIN", slice_cells)
        for source in sources * (2 if twice else 1):
            window.absorb(source)
    assert [held(source) for source in sources] == [plain(pairs) for pairs in finer], (
        "the finer ones are left as they are"
    )
    window.add(np.array([k for k, _ in late], np.int32), np.array([c for _, c in late], np.uint32))
    assert held(window) == plain(first, *finer, late)
    dense = sum(len(cells) * 4 > SHAPE.nbytes for cells in held(window).values())
    assert len(window._bitmaps) == dense


def test_a_store_opens_the_window_that_absorbs():
    store, finer = WindowStore(SHAPE), filled([(1, 3)], True)
    store.absorb(40, finer)
    assert store.starts() == [40]
    assert held(store.get(40)) == {1: {3}}
