"""Cells of a large shape, folded, are the cells that the smaller shape gives the same hashes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfm_stream.errors import IncompatibleError
from sfm_stream.sketch.folding import fold_bits, fold_cells
from sfm_stream.sketch.shape import SketchShape

BUCKETS, LEVELS = st.sampled_from([16, 64, 4096, 65536]), st.integers(2, 48)
HASHES = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**16 - 1).map(lambda bucket: bucket << 48),
    st.integers(0, 64).map(lambda zeros: 2**64 - 2**zeros),
)


@given(BUCKETS, LEVELS, BUCKETS, LEVELS, st.lists(HASHES, max_size=20))
def test_folded_cells_are_those_of_the_smaller_shape(buckets, levels, fewer, lower, hashes):
    large = SketchShape(max(buckets, fewer), max(levels, lower))
    small, column = SketchShape(fewer, lower), np.array(hashes, np.uint64)
    assert fold_cells(large.cells_of(column), large, small).tolist() == small.cells_of(column).tolist()


@given(st.sampled_from([16, 64]), st.integers(2, 9), st.lists(st.integers(0, 2**64 - 1), max_size=30))
def test_a_folded_bitmap_is_that_of_the_smaller_shape(buckets, levels, hashes):
    large, small, column = SketchShape(256, 10), SketchShape(buckets, levels), np.array(hashes, np.uint64)

    def packed(shape):
        bits = np.zeros(shape.cells, np.bool_)
        bits[shape.cells_of(column)] = True
        return np.packbits(bits, bitorder="little")

    assert fold_bits(packed(large), large, small).tobytes() == packed(small).tobytes()


def test_one_shape_is_itself_and_a_larger_one_is_refused():
    shape, cells = SketchShape(64, 8), np.array([3, 9], np.uint32)
    assert fold_cells(cells, shape, shape) is cells
    for larger in (SketchShape(128, 8), SketchShape(64, 9)):
        with pytest.raises(IncompatibleError, match="which has more"):
            fold_cells(cells, shape, larger)
