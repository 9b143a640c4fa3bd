"""The tally: for each cell, how many of several releases show a one. A merge keeps less."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import UsageError
from sfm_stream.sketch.agreement import require_same
from sfm_stream.sketch.mechanism import Mechanism
from sfm_stream.sketch.noisy_bits import COPY, NoisyBits, require_draws_of_their_own
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.window_sizes import WindowSizes


@dataclass(frozen=True, eq=False)
class Tally:
    """The number of noisy ones in each cell, over `releases` sketches of one shape, hash and flip threshold.

    Tallies of disjoint releases are added with `+`, in any order.

    counts: shape (levels, buckets), int32, read-only, each in 0..releases. A tally is post-processing and costs no
    privacy. contents: digests of the bits of its releases; empty in a tally that was read from bytes. sizes: what each
    release says of its own window, which narrows the estimate of their union; None where that was not kept. Neither
    makes two tallies differ.
    """

    shape: SketchShape
    flip_threshold: int
    hash: str
    releases: int
    counts: NDArray[np.int32]
    contents: frozenset[bytes] = field(default=frozenset(), repr=False)
    sizes: WindowSizes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.releases < 1:
            raise UsageError("tally: at least one release is needed")
        if self.counts.shape != (self.shape.levels, self.shape.buckets):
            raise UsageError(f"tally: counts of shape {self.counts.shape} do not fit {self.shape}")
        if self.counts.size and not 0 <= int(self.counts.min()) <= int(self.counts.max()) <= self.releases:
            raise UsageError("tally: a count is outside 0..releases")
        if self.sizes is not None:
            self._require_sizes_that_fit(self.sizes)
        self.counts.setflags(write=False)

    def _require_sizes_that_fit(self, sizes: WindowSizes) -> None:
        if sizes.ones.shape != (self.releases, self.shape.levels):
            raise UsageError(f"tally: sizes of shape {sizes.ones.shape} do not fit {self.releases} of {self.shape}")
        if int(sizes.ones.max()) > self.shape.buckets:
            raise UsageError("tally: sizes: more ones than buckets")
        if not np.array_equal(sizes.ones.sum(axis=0, dtype=np.int64), self.counts.sum(axis=1, dtype=np.int64)):
            raise UsageError("tally: sizes: the ones of its releases are not those that it counts")

    @classmethod
    def of(cls, sketches: Iterable[SfmSketch]) -> Tally:
        """The tally of one or more releases. Raises IncompatibleError if shape, hash or flip threshold differ.

        Raises UsageError if a release is given twice: an estimate would take its doubled noise for items.
        """
        inputs = list(sketches)
        if not inputs:
            raise UsageError("tally: no sketches")
        first = inputs[0]
        counts = np.zeros((first.shape.levels, first.shape.buckets), np.int32)
        for sketch in inputs:
            require_same("tally", first, sketch, same_flip_threshold=True)
            counts += sketch.cells()
        require_draws_of_their_own("tally", map(NoisyBits.of, inputs))
        contents = frozenset(hashlib.blake2b(sketch.bits, digest_size=16).digest() for sketch in inputs)
        sizes = WindowSizes.of(inputs)
        return cls(first.shape, first.flip_threshold, first.hash, len(inputs), counts, contents, sizes)

    def __add__(self, other: Tally) -> Tally:
        """The tally of both sets of releases, which must be disjoint.

        Raises UsageError if a release is known to be in both. Of tallies read from bytes this is known only if they
        are equal.
        """
        if not isinstance(other, Tally):
            return NotImplemented
        require_same("tally", self, other, same_flip_threshold=True)
        require_disjoint("tally", [self, other])
        return Tally(
            self.shape,
            self.flip_threshold,
            self.hash,
            self.releases + other.releases,
            self.counts + other.counts,
            self.contents | other.contents,
            WindowSizes.joined([self.sizes, other.sizes]) if self.sizes and other.sizes else None,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        return (self.shape, self.flip_threshold, self.hash, self.releases) == (
            other.shape,
            other.flip_threshold,
            other.hash,
            other.releases,
        ) and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]

    def digest(self) -> bytes:
        """SHA-256 of everything in the tally: the identity of this content."""
        head = f"{self.shape} {self.flip_threshold} {self.hash} {self.releases}\n".encode()
        return hashlib.sha256(head + self.counts.astype("<i4").tobytes()).digest()

    def histogram(self) -> NDArray[np.int64]:
        """Shape (levels, releases + 1): how many cells of a level have which count; all that estimates need."""
        width = self.releases + 1
        offset = self.counts + (np.arange(self.shape.levels, dtype=np.int64) * width)[:, None]
        return np.bincount(offset.reshape(-1), minlength=self.shape.levels * width).reshape(-1, width)


def require_disjoint(what: str, tallies: Sequence[Tally]) -> None:
    """Raise UsageError where two of the tallies are known to hold the same release.

    The tallies have one shape; their flip thresholds may differ. Two tallies are known to share a release if both list
    its bits, or if all their counts are equal. The counts of independent releases are equal with a chance of at most
    2^-64: a cell agrees in two sums no more often than in two single draws with the smaller threshold.
    """
    for one, other in combinations(tallies, 2):
        cells, noise = one.shape.cells, [Mechanism.flipping(tally.flip_threshold) for tally in (one, other)]
        shared = one.contents & other.contents and noise[0].tells_copies(cells, noise[1])
        equal = one.releases == other.releases and np.array_equal(one.counts, other.counts)
        if shared or (equal and all(mechanism.tells_copies(cells) for mechanism in noise)):
            raise UsageError(f"{what}: {COPY}")
