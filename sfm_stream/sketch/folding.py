"""Cells of one shape as cells of a smaller one: what the same items would have set in it, exactly.

A bucket is the first bits of a hash and a level the zero bits at its end, at most the last level. So a shape with
fewer buckets drops bits of the bucket, and one with fewer levels ends sooner.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import IncompatibleError
from sfm_stream.sketch.shape import SketchShape


def fold_cells(cells: NDArray[np.uint32], shape: SketchShape, into: SketchShape) -> NDArray[np.uint32]:
    """Shape (n,): the cell of the smaller shape for each cell of the larger one. Raises IncompatibleError."""
    if shape == into:
        return cells
    _require_smaller(shape, into)
    bucket = (cells & np.uint32(shape.buckets - 1)) >> np.uint32(shape.bucket_bits - into.bucket_bits)
    level: NDArray[np.uint32] = np.minimum(cells >> np.uint32(shape.bucket_bits), np.uint32(into.levels - 1))
    return (level << np.uint32(into.bucket_bits)) | bucket


def fold_bits(bits: NDArray[np.uint8], shape: SketchShape, into: SketchShape) -> NDArray[np.uint8]:
    """Shape (into.nbytes,): the packed bitmap in the smaller shape of one in the larger. Raises IncompatibleError."""
    if shape == into:
        return bits
    cells = np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.uint32)
    folded = np.zeros(into.cells, np.bool_)
    folded[fold_cells(cells, shape, into)] = True
    return np.packbits(folded, bitorder="little")


def _require_smaller(shape: SketchShape, into: SketchShape) -> None:
    if into.buckets > shape.buckets or into.levels > shape.levels:
        raise IncompatibleError(f"cells of {shape} cannot become cells of {into}, which has more")
