"""A sum of sketches and tallies in little memory: bit planes and a ripple-carry adder.

Plane i holds bit i of every count, in the layout of a sketch. Adding a sketch takes about two passes over a bitmap. The
sum of 60 sketches holds 6 bitmaps; an array of int32 counts has the size of 32. Beside them it keeps what each release
says of its own window: a few bytes for each of its levels, and its noisy count (sizes_sum.py).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.agreement import Combinable
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.sizes_sum import SizesSum, sizes_bytes
from sfm_stream.sketch.tally import Tally
from sfm_stream.sketch.tally_histogram import TallyHistogram

_FEW_PLANES = 6
"""Up to so many, a histogram from the planes is cheaper than one from counts."""
_PLANE_BYTES = 150
"""What a plane takes beside its bitmap, about."""


class TallySum:
    """The sum of sketches and tallies of one shape, flip threshold and hash. The caller checks that they agree."""

    __slots__ = ("_planes", "_sizes", "_word", "flip_threshold", "hash", "releases", "shape")

    def __init__(self, shape: SketchShape, flip_threshold: int, item_hash: str) -> None:
        self.shape, self.flip_threshold, self.hash = shape, flip_threshold, item_hash
        self.releases = 0
        # buckets are a power of two from 16 on, so a plane is whole words of 16 bits, and mostly of 64.
        self._word: type[np.unsignedinteger] = np.uint16 if shape.nbytes % 8 else np.uint64
        self._planes: list[NDArray[np.unsignedinteger]] = []
        self._sizes = SizesSum(shape)

    @classmethod
    def like(cls, other: Combinable) -> TallySum:
        """An empty sum for sketches of the same shape, flip threshold and hash."""
        return cls(other.shape, other.flip_threshold, other.hash)

    @property
    def nbytes(self) -> int:
        """Bytes that the counts take: at most releases.bit_length() bitmaps."""
        return len(self._planes) * self.shape.nbytes

    def add(self, sketch: SfmSketch) -> None:
        self._carry(np.frombuffer(sketch.bits, self._word), 0)
        self._sizes.add(sketch.ones(), [sketch.count])
        self.releases += 1

    def add_tally(self, tally: Tally) -> None:
        octets = np.ascontiguousarray(tally.counts, "<i4").view(np.uint8).reshape(-1, 4)  # column i: bits 8i .. 8i+7
        for bit in range(tally.releases.bit_length()):
            digits = octets[:, bit // 8] & np.uint8(1 << bit % 8)
            self._carry(np.packbits(digits, bitorder="little").view(self._word), bit)
        if tally.sizes is None:
            self._sizes.forget()
        else:
            self._sizes.add(tally.sizes.ones, tally.sizes.counts)
        self.releases += tally.releases

    def add_sum(self, other: TallySum) -> None:
        """Add another sum, which must not be this one."""
        for bit, plane in enumerate(other._planes):
            self._carry(plane, bit)
        self._sizes.add_sum(other._sizes)
        self.releases += other.releases

    def tally(self) -> Tally:
        """The frozen tally of everything added; at least one release."""
        counts = np.zeros(0, np.int32)
        for low in range(0, max(1, len(self._planes)), 8):
            # Eight planes at a time in bytes: a pass over bytes costs a quarter of a pass over counts.
            octet = np.zeros(self.shape.cells, np.uint8)
            for bit, plane in enumerate(self._planes[low : low + 8]):
                digits = np.unpackbits(plane.view(np.uint8), bitorder="little")
                digits <<= np.uint8(bit)
                octet |= digits
            counts = octet.astype(np.int32) if not low else counts | octet.astype(np.int32) << low
        by_level = counts.reshape(self.shape.levels, -1)
        return Tally(self.shape, self.flip_threshold, self.hash, self.releases, by_level, sizes=self._sizes.sizes())

    def histogram(self) -> TallyHistogram:
        """What an estimate needs of the tally of everything added; at least one release."""
        cells = self._cells_by_count() if len(self._planes) <= _FEW_PLANES else self.tally().histogram()
        return TallyHistogram(self.shape, self.flip_threshold, self.hash, self.releases, cells, self._sizes.sizes())

    def _cells_by_count(self) -> NDArray[np.int64]:
        """Shape (levels, releases + 1). Splits the cells by one plane after the other, and counts what is left of each.

        64 cells a word: no count of a single cell is made.
        """
        levels, width = self.shape.levels, self.releases + 1
        word = np.uint64 if self.shape.buckets % 64 == 0 else np.uint16
        cells = np.full((1, self.shape.nbytes // np.dtype(word).itemsize), np.iinfo(word).max, word)
        for plane in reversed(self._planes):
            halves = np.empty((len(cells), 2, cells.shape[1]), word)
            np.bitwise_and(cells, plane.view(word), out=halves[:, 1])
            np.bitwise_xor(cells, halves[:, 1], out=halves[:, 0])
            cells = halves.reshape(-1, cells.shape[1])
        ones = np.bitwise_count(cells).reshape(len(cells), levels, -1).sum(axis=2, dtype=np.int64).T
        found = np.zeros((levels, width), np.int64)
        found[:, : len(cells)] = ones[:, :width]
        return found

    def _carry(self, carry: NDArray[np.unsignedinteger], bit: int) -> None:
        """Add 2^bit to the count of every cell that is set in `carry`."""
        while np.count_nonzero(carry):
            if bit == len(self._planes):
                self._planes.append(carry.copy())
                return
            if bit > len(self._planes):
                self._planes.append(np.zeros_like(carry))
                continue
            plane = self._planes[bit]
            both = plane & carry
            plane ^= carry
            carry = both
            bit += 1


def memory_of_sum(shape: SketchShape, releases: int) -> int:
    """Bytes that the sum of so many releases holds, about."""
    return releases.bit_length() * (shape.nbytes + _PLANE_BYTES) + sizes_bytes(shape, releases)
