"""The raw sketch: secret, in memory only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.bitmap import RawBitmap
from sfm_stream.sketch.hashing import XXH64, ItemHash
from sfm_stream.sketch.shape import SketchShape


class PcsaSketch(RawBitmap):
    """A PCSA bitmap (Flajolet and Martin, 1985; paper, section "Background"): one item lights one cell.

    Secret as every RawBitmap; `sfm_stream.flip` turns it into the public SfmSketch.
    """

    __slots__ = ("shape",)

    def __init__(self, shape: SketchShape, item_hash: ItemHash = XXH64) -> None:
        super().__init__(shape, item_hash)
        self.shape = shape

    @classmethod
    def of_cells(cls, shape: SketchShape, cells: NDArray[np.uint32], item_hash: ItemHash = XXH64) -> PcsaSketch:
        """The sketch in which exactly these cells are lit. cells: shape (n,), each below shape.cells."""
        lit = np.zeros(shape.cells, np.bool_)
        lit[cells] = True
        return cls.of_bits(shape, np.packbits(lit, bitorder="little"), item_hash)

    @classmethod
    def of_bits(cls, shape: SketchShape, bits: NDArray[np.uint8], item_hash: ItemHash = XXH64) -> PcsaSketch:
        """The sketch with this packed bitmap, shape (shape.nbytes,), least significant bit first."""
        return cls(shape, item_hash)._fill(bits)
