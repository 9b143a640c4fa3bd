"""The cells of one window, looked up key by key. SECRET, as the window is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfm_stream import kernels
from sfm_stream.sketch.folding import fold_bits, fold_cells
from sfm_stream.sketch.shape import SketchShape


class CellsByKey:
    """The cells of a window that takes no more events: packed bitmaps on demand, one key at a time.

    held: the shape in which the cells are held. shape: that of the bitmaps, into which they are folded.
    """

    __slots__ = ("_bitmaps", "_cells", "_ends", "_held", "_keys", "shape")

    def __init__(
        self,
        held: SketchShape,
        shape: SketchShape,
        keys: NDArray[np.int32],
        ends: NDArray[np.int64],
        cells: NDArray[np.uint32],
        bitmaps: dict[int, NDArray[np.uint8]],
    ) -> None:
        self._held, self.shape = held, shape
        self._keys, self._ends, self._cells, self._bitmaps = keys, ends, cells, bitmaps

    def bits(self, key_id: int) -> NDArray[np.uint8]:
        """Shape (shape.nbytes,): the packed bitmap of a key, all zero where it has no cell."""
        bitmap = self._bitmaps.get(key_id)
        if bitmap is not None:
            return fold_bits(bitmap, self._held, self.shape)
        # Of the type of the column: numpy would convert the whole column to that of a Python int, for each key.
        index = int(self._keys.searchsorted(np.int32(key_id)))
        if index < len(self._keys) and self._keys[index] == key_id:
            cells = self._cells[self._ends[index - 1] if index else 0 : self._ends[index]]
            return _bitmap(fold_cells(cells, self._held, self.shape), self.shape)
        return np.zeros(self.shape.nbytes, np.uint8)


def _bitmap(cells: NDArray[np.uint32], shape: SketchShape) -> NDArray[np.uint8]:
    """Shape (shape.nbytes,): the packed bitmap in which these cells are set."""
    if (native := kernels.native()) is not None:
        return np.frombuffer(native.bitmap(cells.view(np.uint8).data.toreadonly(), shape.nbytes), np.uint8)
    bits = np.zeros(shape.cells, np.bool_)
    bits[cells] = True
    return np.packbits(bits, bitorder="little")
