"""The shape of a sketch and the probabilities that follow from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import ShapeError

MIN_BUCKETS, MAX_BUCKETS = 16, 65536
MIN_LEVELS, MAX_LEVELS = 2, 48


@dataclass(frozen=True)
class SketchShape:
    """A bitmap of `levels` rows of `buckets` cells; cell number = level * buckets + bucket, both from 0.

    buckets: a power of two in 16..65536. levels: 2..48. Raises ShapeError otherwise.
    """

    buckets: int
    levels: int

    def __post_init__(self) -> None:
        require_between(self, "buckets", MIN_BUCKETS, MAX_BUCKETS)
        require_between(self, "levels", MIN_LEVELS, MAX_LEVELS)
        if self.buckets & (self.buckets - 1):
            raise ShapeError(f"buckets: {self.buckets} is not a power of two")

    def __str__(self) -> str:
        return f"{self.buckets}x{self.levels}"

    @property
    def bucket_bits(self) -> int:
        """log2(buckets)."""
        return self.buckets.bit_length() - 1

    @property
    def cells(self) -> int:
        """Number of cells, buckets * levels."""
        return self.buckets * self.levels

    @property
    def nbytes(self) -> int:
        """Length of the packed bitmap in bytes; each level is a whole number of bytes."""
        return self.cells // 8

    throws = 1
    """One item sets one cell."""

    @cached_property
    def sizes(self) -> NDArray[np.float64]:
        """Shape (levels,): cells of each level."""
        return constant(np.full(self.levels, float(self.buckets)))

    @cached_property
    def rho(self) -> NDArray[np.float64]:
        """Shape (levels,): probability that one item falls into one given cell of the level.

        2^-min(j, P-1) / B for j = 1..P (paper, section "Cardinality Estimation"); B times their sum is 1.
        """
        j = np.minimum(np.arange(1, self.levels + 1), self.levels - 1)
        return constant(np.exp2(-j.astype(np.float64)) / self.buckets)

    @property
    def capacity(self) -> float:
        """The n at which half an empty cell is expected in the last two levels. Larger n cannot be told apart."""
        return math.log(4.0 * self.buckets) / float(self.rho[-1])

    def cells_of(self, hashes: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Shape (n,): the one cell of each hash. Bucket = top bits; level = trailing zeros, at most levels - 1."""
        bucket = hashes >> np.uint64(64 - self.bucket_bits)
        guarded = hashes | np.uint64(1 << (64 - self.bucket_bits))
        lowest = guarded & (~guarded + np.uint64(1))
        zeros = np.bitwise_count(lowest - np.uint64(1)).astype(np.uint64)
        level = np.minimum(zeros, np.uint64(self.levels - 1))
        return ((level << np.uint64(self.bucket_bits)) | bucket).astype(np.uint32)


def constant(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same array, read-only from now on."""
    values.setflags(write=False)
    return values


def require_between(holder: object, name: str, low: int, high: int) -> None:
    """Raise ShapeError unless this field is an integer in low..high. An integer of numpy is replaced by an int."""
    value = getattr(holder, name)
    if isinstance(value, np.integer):
        value = int(value)
        object.__setattr__(holder, name, value)
    if type(value) is not int:
        raise ShapeError(f"{name}: expected an integer, got {type(value).__name__}")
    if not low <= value <= high:
        raise ShapeError(f"{name}: {value} is outside {low}..{high}")
