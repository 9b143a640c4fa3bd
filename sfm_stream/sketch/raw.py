"""Raw bitmaps and the raw sketch: secret, and in memory only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import IncompatibleError, UsageError
from sfm_stream.sketch.columns import present
from sfm_stream.sketch.hashing import XXH64, ItemHash, hash_items
from sfm_stream.sketch.layout import BitmapLayout
from sfm_stream.sketch.shape import SketchShape


class RawBitmap:
    """The cells that a set of items sets, in any layout. Streams are counted in PcsaSketch.

    SECRET: the bits reveal which items are in the set. So a raw bitmap cannot be pickled, copied, printed or compared.
    This prevents accidents only: the program that holds the object can read `bits`, and so can a debugger.
    `sfm_stream.methods.privatize` makes a public bitmap from it.
    """

    __slots__ = ("_bits", "hash", "layout")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, layout: BitmapLayout, item_hash: ItemHash = XXH64) -> None:
        self.layout = layout
        self.hash = item_hash
        self._bits: NDArray[np.uint8] = np.zeros(layout.nbytes, np.uint8)

    def add(self, items: Iterable[object] | NDArray[np.generic]) -> Self:
        """This bitmap, with the items of a column added. Missing values are left out (columns.py).

        Raises ItemError, and adds nothing, if an item has no canonical encoding, or if the argument is no column.
        """
        cells = self.layout.cells_of(hash_items(present(items), self.hash))
        np.bitwise_or.at(self._bits, cells >> np.uint32(3), (np.uint8(1) << (cells & np.uint32(7)).astype(np.uint8)))
        return self

    def __ior__(self, other: RawBitmap) -> Self:
        """The union with another raw bitmap, in place. A raw and a private bitmap cannot be combined."""
        if not isinstance(other, RawBitmap):
            return NotImplemented
        if (self.layout, self.hash.name) != (other.layout, other.hash.name):
            raise IncompatibleError(
                f"raw sketches differ: {self.layout} {self.hash.name} against {other.layout} {other.hash.name}"
            )
        self._bits |= other._bits
        return self

    def _fill(self, bits: NDArray[np.uint8]) -> Self:
        if bits.shape != self._bits.shape:
            raise UsageError(f"bits: {bits.shape} bytes where {self.layout} has {self.layout.nbytes}")
        self._bits[:] = bits
        return self

    @property
    def bits(self) -> NDArray[np.uint8]:
        """The packed bitmap, shape (layout.nbytes,): a read-only copy of its present state. SECRET."""
        return np.frombuffer(self._bits.tobytes(), np.uint8)

    def popcount(self) -> int:
        """The number of set cells. One item changes it by at most layout.throws. SECRET."""
        return int(np.bitwise_count(self._bits).sum())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.layout} {self.hash.name}, content withheld>"

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError("raw sketches are secret and do not compare")

    def _refuse(self, *arguments: object) -> NoReturn:
        raise TypeError("raw sketches are secret: they are neither pickled nor copied")

    __reduce_ex__ = __reduce__ = __getstate__ = __copy__ = __deepcopy__ = _refuse


class PcsaSketch(RawBitmap):
    """A PCSA bitmap (Flajolet and Martin, 1985; paper, section "Background"): one item sets one cell.

    SECRET, as every RawBitmap. `sfm_stream.flip` makes a public SfmSketch from it.
    """

    __slots__ = ("shape",)

    def __init__(self, shape: SketchShape, item_hash: ItemHash = XXH64) -> None:
        super().__init__(shape, item_hash)
        self.shape = shape

    @classmethod
    def of_bits(cls, shape: SketchShape, bits: NDArray[np.uint8], item_hash: ItemHash = XXH64) -> PcsaSketch:
        """The sketch with this packed bitmap, shape (shape.nbytes,), least significant bit first."""
        return cls(shape, item_hash)._fill(bits)
