"""The private sketch: public and frozen. Merging and estimating cost no more privacy, however often."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import UsageError
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.units import INT64_MAX, INT64_MIN

GRID = 1 << 64
"""Probabilities of releases are integers in units of 1 / GRID."""


@dataclass(frozen=True, slots=True)
class NoisyCount:
    """The number of set cells of a raw sketch plus discrete Laplace noise (privacy/discrete_laplace.py).

    value: -2^63 .. 2^63 - 1; it may be negative. epsilon: what the count alone costs, as a decimal.
    """

    value: int
    epsilon: Decimal

    def __post_init__(self) -> None:
        if type(self.value) is not int:
            raise UsageError(f"count: value: expected int, got {type(self.value).__name__}")
        if type(self.epsilon) is not Decimal:
            raise UsageError(f"count: epsilon: expected Decimal, got {type(self.epsilon).__name__}")
        if not INT64_MIN <= self.value <= INT64_MAX:
            raise UsageError("count: value: outside 64 bits")
        if not (self.epsilon.is_finite() and self.epsilon > 0):
            raise UsageError(f"count: epsilon: {self.epsilon} is not above 0")


@dataclass(frozen=True, slots=True)
class SfmSketch:
    """A flipped PCSA bitmap (paper, def. sym-rr): each cell was inverted with probability flip_threshold / 2^64.

    flip_threshold: 1 .. 2^63. At 2^63 the bits are pure noise; only a merge of very many sketches gets there. hash: the
    public name of the item hash. bits: shape.nbytes bytes, cell number = bit number, least significant bit first.
    count: the noisy count beside the bits, if the release has one; a merge has none.
    """

    shape: SketchShape
    flip_threshold: int
    hash: str
    bits: bytes
    count: NoisyCount | None = None

    def __post_init__(self) -> None:
        if self.count is not None and type(self.count) is not NoisyCount:
            raise UsageError(f"count: expected NoisyCount, got {type(self.count).__name__}")
        for name, expected in (("flip_threshold", int), ("hash", str), ("bits", bytes)):
            if type(value := getattr(self, name)) is not expected:
                raise UsageError(f"{name}: expected {expected.__name__}, got {type(value).__name__}")
        if not 1 <= self.flip_threshold <= GRID // 2:
            raise UsageError(f"flip_threshold: {self.flip_threshold} is outside 1..2^63")
        if len(self.bits) != self.shape.nbytes:
            raise UsageError(f"bits: {len(self.bits)} bytes where {self.shape} has {self.shape.nbytes}")

    @property
    def flip_probability(self) -> float:
        """q = flip_threshold / 2^64. Of a release it is the price in privacy; of a merge it only measures the noise."""
        return self.flip_threshold / GRID

    def cells(self) -> NDArray[np.bool_]:
        """Shape (levels, buckets): the noisy bits."""
        flat = np.unpackbits(np.frombuffer(self.bits, np.uint8), bitorder="little")
        return flat.reshape(self.shape.levels, self.shape.buckets).view(np.bool_)

    def ones(self) -> NDArray[np.int64]:
        """Shape (levels,): the number of noisy ones in each level. The estimator needs nothing else."""
        word = np.uint64 if self.shape.buckets % 64 == 0 else np.uint16  # buckets are a power of two from 16 on
        packed = np.frombuffer(self.bits, word).reshape(self.shape.levels, -1)
        return np.asarray(np.add.reduce(np.bitwise_count(packed), axis=1, dtype=np.int64))

    def digest(self) -> bytes:
        """SHA-256 of shape, flip threshold, hash, count and bits: the identity of this content."""
        count = f" {self.count.value} {self.count.epsilon}" if self.count else ""
        head = f"{self.shape} {self.flip_threshold} {self.hash}{count}\n".encode()
        return hashlib.sha256(head + self.bits).digest()

    def __repr__(self) -> str:
        count = f", count {self.count.value}" if self.count else ""
        return f"SfmSketch({self.shape}, q={self.flip_probability:.6g}, {self.hash}{count})"
