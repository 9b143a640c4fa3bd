"""The private sketch: public, frozen, and safe to merge and estimate from without limit."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import IncompatibleError, UsageError
from sfm_stream.sketch.shape import SketchShape

GRID = 1 << 64


@dataclass(frozen=True, slots=True)
class SfmSketch:
    """A flipped PCSA bitmap: each cell was inverted with probability exactly k / 2^64 (paper, def. sym-rr).

    bits: shape.nbytes bytes, cell number = bit number, least significant bit first. hash: public name of the item
    hash. k in 1 .. 2^63; k = 2^63 is pure noise, which only a merge of very many noisy sketches reaches.
    """

    shape: SketchShape
    k: int
    hash: str
    bits: bytes

    def __post_init__(self) -> None:
        for name, value, kind in (("k", self.k, int), ("hash", self.hash, str), ("bits", self.bits, bytes)):
            if type(value) is not kind:
                raise UsageError(f"{name}: expected {kind.__name__}, got {type(value).__name__}")
        if not 1 <= self.k <= GRID // 2:
            raise UsageError(f"k: {self.k} is outside 1..2^63")
        if len(self.bits) != self.shape.nbytes:
            raise UsageError(f"bits: {len(self.bits)} bytes where {self.shape} has {self.shape.nbytes}")

    @property
    def flip_probability(self) -> float:
        """q = k / 2^64. Of a release it prices its privacy; of a merge it is only a measure of noise."""
        return self.k / GRID

    def cells(self) -> NDArray[np.bool_]:
        """Shape (levels, buckets): the noisy bits."""
        flat = np.unpackbits(np.frombuffer(self.bits, np.uint8), bitorder="little")
        return flat.reshape(self.shape.levels, self.shape.buckets).view(np.bool_)

    def ones(self) -> NDArray[np.int64]:
        """Shape (levels,): noisy ones of each level, all that the estimator needs."""
        packed = np.frombuffer(self.bits, np.uint8).reshape(self.shape.levels, -1)
        return np.asarray(np.bitwise_count(packed).sum(axis=1, dtype=np.int64))

    def digest(self) -> bytes:
        """SHA-256 of shape, k, hash and bits: the identity of this content."""
        head = f"{self.shape} {self.k} {self.hash}\n".encode()
        return hashlib.sha256(head + self.bits).digest()

    def __repr__(self) -> str:
        return f"SfmSketch({self.shape}, q={self.flip_probability:.6g}, {self.hash})"


class Described(Protocol):
    """What must agree before two public values are combined: an SfmSketch or a Tally."""

    @property
    def shape(self) -> SketchShape: ...
    @property
    def k(self) -> int: ...
    @property
    def hash(self) -> str: ...


def require_same(what: str, first: Described, other: Described, *, same_k: bool) -> None:
    """Raise IncompatibleError naming the first property in which two sketches differ."""
    pairs = [("shape", str(first.shape), str(other.shape)), ("hash", first.hash, other.hash)]
    if same_k:
        pairs.append(("flip probability k", str(first.k), str(other.k)))
    for name, mine, theirs in pairs:
        if mine != theirs:
            raise IncompatibleError(f"{what}: {name} differs, {mine} against {theirs}")
