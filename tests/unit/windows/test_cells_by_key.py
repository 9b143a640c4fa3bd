"""Cells of one window as bitmaps, key by key, with each kernel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfm_stream import kernels
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.windows.cells_by_key import CellsByKey

SHAPE = SketchShape(64, 8)
SMALL = SketchShape(16, 5)
same_kernel = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def cells_by_key(sets: dict[int, set[int]], shape: SketchShape) -> CellsByKey:
    keys = np.array(sorted(sets), np.int32)
    columns = [sorted(sets[key]) for key in sorted(sets)]
    ends = np.cumsum([len(column) for column in columns], dtype=np.int64)
    cells = np.array([cell for column in columns for cell in column], np.uint32)
    return CellsByKey(SHAPE, shape, keys, ends, cells, {})


def set_bits(bits: np.ndarray) -> set[int]:
    return {8 * at + bit for at, byte in enumerate(bits.tolist()) for bit in range(8) if byte >> bit & 1}


@same_kernel
@given(
    st.dictionaries(
        st.integers(0, 9), st.sets(st.integers(0, SHAPE.cells - 1), min_size=1, max_size=SHAPE.cells), max_size=5
    )
)
def test_the_bits_of_a_key_are_its_cells(kernel: str, sets: dict[int, set[int]]) -> None:
    held = cells_by_key(sets, SHAPE)
    for key in range(11):
        bits = held.bits(key)
        assert (bits.shape, bits.dtype) == ((SHAPE.nbytes,), np.uint8)
        assert set_bits(bits) == sets.get(key, set())


@same_kernel
@given(st.sets(st.integers(0, SHAPE.cells - 1), min_size=1))
def test_of_a_smaller_shape_they_are_the_folded_cells(kernel: str, cells: set[int]) -> None:
    def folded(cell: int) -> int:
        level, bucket = divmod(cell, 64)
        return min(level, 4) * 16 + bucket // 4

    assert set_bits(cells_by_key({3: cells}, SMALL).bits(3)) == {folded(cell) for cell in cells}


@pytest.mark.parametrize("kernel", ["native"], indirect=True)
def test_the_compiled_bitmap_refuses_what_are_no_cells_of_it(kernel: str) -> None:
    native = kernels.native()
    assert native is not None
    cell = np.array([16], np.uint32).tobytes()
    assert native.bitmap(cell, 3) == b"\0\0\x01"
    with pytest.raises(ValueError, match="no such cell"):
        native.bitmap(cell, 2)
    with pytest.raises(ValueError, match="four bytes"):
        native.bitmap(cell[:3], 3)
    with pytest.raises(ValueError, match="read-only"):
        native.bitmap(np.zeros(4, np.uint8), 3)
