"""Public bits: what a mechanism made of secret ones."""

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
"""What is wrong where noise is taken for independent that is not."""


@dataclass(frozen=True, slots=True)
class NoisyBits:
    """A bit vector that went through a mechanism, bit by bit and independently. It need not be a sketch of any set.

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
    """Raise UsageError where one release is there twice: as if its noise were independent, the result would be wrong.

    Equal bits are a copy whatever mechanism they name: other formats round it. But nothing is concluded from equal bits
    where independent noise may make them, with a chance of more than 2^-64.
    """
    seen: dict[tuple[int, bytes], Mechanism] = {}
    for bits in inputs:
        content = (bits.length, bits.packed)
        if content in seen and seen[content].tells_copies(bits.length, bits.mechanism):
            raise UsageError(f"{what}: {COPY}")
        seen[content] = bits.mechanism


@dataclass(frozen=True, slots=True)
class NoisyBitmap:
    """A private bitmap of a set: which layout its bits have, and the public name of the item hash."""

    layout: BitmapLayout
    hash: str
    noisy_bits: NoisyBits

    def __post_init__(self) -> None:
        if self.noisy_bits.length != self.layout.cells:
            raise UsageError(f"bits: {self.noisy_bits.length} where {self.layout} has {self.layout.cells}")

    @classmethod
    def of(cls, sketch: SfmSketch) -> NoisyBitmap:
        """The same private sketch, as one bitmap among others."""
        return cls(sketch.shape, sketch.hash, NoisyBits.of(sketch))

    @property
    def mechanism(self) -> Mechanism:
        """What its bits went through."""
        return self.noisy_bits.mechanism

    def ones(self) -> NDArray[np.int64]:
        """Shape (groups,): noisy ones in each group of cells, all that the estimator needs."""
        starts = np.concatenate(([0], np.cumsum(self.layout.sizes)[:-1])).astype(np.int64)
        return np.add.reduceat(self.noisy_bits.array(), starts, dtype=np.int64)
