"""A sum of sketches and tallies in little memory: bit planes and a ripple-carry adder.

Plane i holds bit i of every count, in the layout of a sketch. Adding a sketch takes about two passes over a bitmap. The
sum of 60 sketches holds 6 bitmaps; an array of int32 counts has the size of 32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.agreement import Combinable
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally


class TallySum:
    """The sum of sketches and tallies of one shape, flip threshold and hash. The caller checks that they agree."""

    __slots__ = ("_planes", "flip_threshold", "hash", "releases", "shape")

    def __init__(self, shape: SketchShape, flip_threshold: int, item_hash: str) -> None:
        self.shape, self.flip_threshold, self.hash = shape, flip_threshold, item_hash
        self.releases = 0
        self._planes: list[NDArray[np.uint8]] = []

    @classmethod
    def like(cls, other: Combinable) -> TallySum:
        """An empty sum for sketches of the same shape, flip threshold and hash."""
        return cls(other.shape, other.flip_threshold, other.hash)

    @property
    def nbytes(self) -> int:
        """Bytes that the counts take: at most releases.bit_length() bitmaps."""
        return len(self._planes) * self.shape.nbytes

    def add(self, sketch: SfmSketch) -> None:
        self._carry(np.frombuffer(sketch.bits, np.uint8), 0)
        self.releases += 1

    def add_tally(self, tally: Tally) -> None:
        octets = np.ascontiguousarray(tally.counts, "<i4").view(np.uint8).reshape(-1, 4)  # column i: bits 8i .. 8i+7
        for bit in range(tally.releases.bit_length()):
            digits = octets[:, bit // 8] & np.uint8(1 << bit % 8)
            self._carry(np.packbits(digits, bitorder="little"), bit)
        self.releases += tally.releases

    def add_sum(self, other: TallySum) -> None:
        """Add another sum, which must not be this one."""
        for bit, plane in enumerate(other._planes):
            self._carry(plane, bit)
        self.releases += other.releases

    def tally(self) -> Tally:
        """The frozen tally of everything added; at least one release."""
        counts = np.zeros(0, np.int32)
        for low in range(0, max(1, len(self._planes)), 8):
            # Eight planes at a time in bytes: a pass over bytes costs a quarter of a pass over counts.
            octet = np.zeros(self.shape.cells, np.uint8)
            for bit, plane in enumerate(self._planes[low : low + 8]):
                digits = np.unpackbits(plane, bitorder="little")
                digits <<= np.uint8(bit)
                octet |= digits
            counts = octet.astype(np.int32) if not low else counts | octet.astype(np.int32) << low
        return Tally(self.shape, self.flip_threshold, self.hash, self.releases, counts.reshape(self.shape.levels, -1))

    def _carry(self, carry: NDArray[np.uint8], bit: int) -> None:
        """Add 2^bit to the count of every cell that is set in `carry`."""
        while carry.any():
            if bit == len(self._planes):
                self._planes.append(carry.copy())
                return
            if bit > len(self._planes):
                self._planes.append(np.zeros(self.shape.nbytes, np.uint8))
                continue
            plane = self._planes[bit]
            both = plane & carry
            plane ^= carry
            carry = both
            bit += 1
