"""A tally that grows: bit planes and a ripple-carry adder, so that it takes room for its digits only.

Plane i holds bit i of every count, laid out as a sketch. Adding a sketch costs about two passes over a bitmap; a
tally of 60 sketches holds 6 bitmaps, where an array of counts would hold 32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.agreement import Combinable
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally


class TallySum:
    """Sums sketches and tallies of one shape, flip threshold and hash; the caller has made sure that they agree."""

    __slots__ = ("_planes", "flip_threshold", "hash", "releases", "shape")

    def __init__(self, shape: SketchShape, flip_threshold: int, item_hash: str) -> None:
        self.shape, self.flip_threshold, self.hash = shape, flip_threshold, item_hash
        self.releases = 0
        self._planes: list[NDArray[np.uint8]] = []

    @classmethod
    def like(cls, other: Combinable) -> TallySum:
        """An empty sum for the same kind of sketches."""
        return cls(other.shape, other.flip_threshold, other.hash)

    @property
    def nbytes(self) -> int:
        """Memory of the counts: at most releases.bit_length() bitmaps."""
        return len(self._planes) * self.shape.nbytes

    def add(self, sketch: SfmSketch) -> None:
        self._carry(np.frombuffer(sketch.bits, np.uint8), 0)
        self.releases += 1

    def add_tally(self, tally: Tally) -> None:
        octets = np.ascontiguousarray(tally.counts, "<i4").view(np.uint8).reshape(-1, 4)  # column i: places 8i .. 8i+7
        for place in range(tally.releases.bit_length()):
            digits = octets[:, place // 8] & np.uint8(1 << place % 8)
            self._carry(np.packbits(digits, bitorder="little"), place)
        self.releases += tally.releases

    def add_sum(self, other: TallySum) -> None:
        """Add another sum; not this one itself."""
        for place, plane in enumerate(other._planes):
            self._carry(plane, place)
        self.releases += other.releases

    def tally(self) -> Tally:
        """The frozen tally of everything added; at least one release."""
        counts = np.zeros(0, np.int32)
        for low in range(0, max(1, len(self._planes)), 8):
            # Eight places at a time in bytes: passes over bytes cost a quarter of passes over counts.
            octet = np.zeros(self.shape.cells, np.uint8)
            for place, plane in enumerate(self._planes[low : low + 8]):
                digits = np.unpackbits(plane, bitorder="little")
                digits <<= np.uint8(place)
                octet |= digits
            counts = octet.astype(np.int32) if not low else counts | octet.astype(np.int32) << low
        return Tally(self.shape, self.flip_threshold, self.hash, self.releases, counts.reshape(self.shape.levels, -1))

    def _carry(self, carry: NDArray[np.uint8], place: int) -> None:
        """Add `carry` at this binary place."""
        while carry.any():
            if place == len(self._planes):
                self._planes.append(carry.copy())
                return
            if place > len(self._planes):
                self._planes.append(np.zeros(self.shape.nbytes, np.uint8))
                continue
            plane = self._planes[place]
            both = plane & carry
            plane ^= carry
            carry = both
            place += 1
