"""Noisy bits: what a mechanism makes of secret bits. They are public."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import UsageError
from sfm_stream.sketch.layout import BitmapLayout
from sfm_stream.sketch.mechanism import Mechanism
from sfm_stream.sketch.sfm import SfmSketch

COPY = "one release is there twice, with one and the same noise; leave the copy out"
"""The problem where a computation needs independent noise and gets the same noise twice."""


@dataclass(frozen=True, slots=True)
class NoisyBits:
    """A vector of bits, each of which went through a mechanism independently. It need not be the bitmap of a set.

    packed: ceil(length / 8) bytes, least significant bit first, no bit at or past `length`.
    """

    mechanism: Mechanism
    length: int
    packed: bytes

    def __post_init__(self) -> None:
        if len(self.packed) != -(-self.length // 8):
            raise UsageError(f"bits: {len(self.packed)} bytes, {self.length} bits have {-(-self.length // 8)}")
        if self.length % 8 and self.packed[-1] >> self.length % 8:
            raise UsageError(f"bits: a bit at or past {self.length} is set")

    @classmethod
    def of(cls, sketch: SfmSketch) -> NoisyBits:
        """The bits of a private sketch."""
        return cls(Mechanism.flipping(sketch.flip_threshold), sketch.shape.cells, sketch.bits)

    @classmethod
    def of_array(cls, mechanism: Mechanism, bits: NDArray[np.bool_]) -> NoisyBits:
        """bits: shape (length,)."""
        return cls(mechanism, bits.size, np.packbits(bits, bitorder="little").tobytes())

    def array(self) -> NDArray[np.bool_]:
        """Shape (length,)."""
        packed = np.frombuffer(self.packed, np.uint8)
        return np.unpackbits(packed, count=self.length, bitorder="little").view(np.bool_)

    def digest(self) -> bytes:
        """SHA-256 of mechanism, length and bits: the identity of this content."""
        head = f"{self.mechanism.p_threshold} {self.mechanism.q_threshold} {self.length}\n".encode()
        return hashlib.sha256(head + self.packed).digest()


def require_draws_of_their_own(what: str, inputs: Iterable[NoisyBits]) -> None:
    """Raise UsageError if one release is given twice. The noise of the inputs must be independent.

    Inputs with equal bits are copies of one release, even if their mechanisms differ: other formats round thresholds.
    They are not taken for copies where independent noise gives equal bits with a chance above 2^-64.
    """
    seen: dict[tuple[int, bytes], Mechanism] = {}
    for bits in inputs:
        content = (bits.length, bits.packed)
        if content in seen and seen[content].tells_copies(bits.length, bits.mechanism):
            raise UsageError(f"{what}: {COPY}")
        seen[content] = bits.mechanism


@dataclass(frozen=True, slots=True)
class NoisyBitmap:
    """A private bitmap of a set: the layout of its bits, and the public name of the item hash."""

    layout: BitmapLayout
    hash: str
    noisy_bits: NoisyBits

    def __post_init__(self) -> None:
        if self.noisy_bits.length != self.layout.cells:
            raise UsageError(f"bits: {self.noisy_bits.length} where {self.layout} has {self.layout.cells}")

    @classmethod
    def of(cls, sketch: SfmSketch) -> NoisyBitmap:
        """The bitmap of a private sketch."""
        return cls(sketch.shape, sketch.hash, NoisyBits.of(sketch))

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that its bits went through."""
        return self.noisy_bits.mechanism

    def ones(self) -> NDArray[np.int64]:
        """Shape (groups,): the number of noisy ones in each group of cells. The estimator needs nothing else."""
        starts = np.concatenate(([0], np.cumsum(self.layout.sizes)[:-1])).astype(np.int64)
        return np.add.reduceat(self.noisy_bits.array(), starts, dtype=np.int64)
