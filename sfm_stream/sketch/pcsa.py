"""The raw sketch: secret, in memory only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import IncompatibleError, UsageError
from sfm_stream.sketch.hashing import XXH64, ItemHash, cells_of, hash_items
from sfm_stream.sketch.shape import SketchShape


class PcsaSketch:
    """A PCSA bitmap (Flajolet and Martin, 1985; paper, section "Background"): one item lights one cell.

    It reveals who is in it, so it cannot be pickled, copied to text or compared. `sfm_stream.flip` turns it into the
    public SfmSketch; no other way out exists.
    """

    __slots__ = ("_bits", "hash", "shape")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, shape: SketchShape, item_hash: ItemHash = XXH64) -> None:
        self.shape = shape
        self.hash = item_hash
        self._bits: NDArray[np.uint8] = np.zeros(shape.nbytes, np.uint8)

    @classmethod
    def of_cells(cls, shape: SketchShape, cells: NDArray[np.uint32], item_hash: ItemHash = XXH64) -> PcsaSketch:
        """The sketch in which exactly these cells are lit. cells: shape (n,), each below shape.cells."""
        lit = np.zeros(shape.cells, np.bool_)
        lit[cells] = True
        return cls.of_bits(shape, np.packbits(lit, bitorder="little"), item_hash)

    @classmethod
    def of_bits(cls, shape: SketchShape, bits: NDArray[np.uint8], item_hash: ItemHash = XXH64) -> PcsaSketch:
        """The sketch with this packed bitmap, shape (shape.nbytes,), least significant bit first."""
        sketch = cls(shape, item_hash)
        if bits.shape != (shape.nbytes,):
            raise UsageError(f"bits: {bits.shape} bytes where {shape} has {shape.nbytes}")
        sketch._bits[:] = bits
        return sketch

    def add(self, items: Iterable[object] | NDArray[np.generic]) -> PcsaSketch:
        """Add a column of items; returns self. Raises ItemError and adds nothing if one has no canonical encoding."""
        cells = cells_of(hash_items(items, self.hash), self.shape)
        np.bitwise_or.at(self._bits, cells >> np.uint32(3), (np.uint8(1) << (cells & np.uint32(7)).astype(np.uint8)))
        return self

    def __ior__(self, other: PcsaSketch) -> PcsaSketch:
        """The union with another raw sketch, in place. A raw and a private sketch can never be combined."""
        if not isinstance(other, PcsaSketch):
            return NotImplemented
        if (self.shape, self.hash.name) != (other.shape, other.hash.name):
            raise IncompatibleError(
                f"raw sketches differ: {self.shape} {self.hash.name} against {other.shape} {other.hash.name}"
            )
        self._bits |= other._bits
        return self

    @property
    def bits(self) -> NDArray[np.uint8]:
        """Read-only view of the packed bitmap, shape (shape.nbytes,). SECRET."""
        view = self._bits.view()
        view.setflags(write=False)
        return view

    def popcount(self) -> int:
        """Number of lit cells; one item changes it by at most 1. SECRET."""
        return int(np.bitwise_count(self._bits).sum())

    def __repr__(self) -> str:
        return f"<PcsaSketch {self.shape} {self.hash.name}, content withheld>"

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError("raw sketches are secret and do not compare")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("raw sketches are secret: they are neither pickled nor copied")
