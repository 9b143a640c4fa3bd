"""What each release of a tally says of its own window. The counts of a tally do not tell one window from another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import UsageError
from sfm_stream.sketch.sfm import NoisyCount, SfmSketch

MAX_RELEASES = 1024
"""Of more releases a sum keeps no sizes: they would take more room than its counts, and so many say little."""


@dataclass(frozen=True, eq=False, slots=True)
class WindowSizes:
    """For each release of a tally: the noisy ones of each level, and the noisy count if the release has one.

    That is all that an estimate of the size of its window needs. It is a part of what was released, so it costs no
    privacy; and it is integers, so it does not change where estimates get better. Rows have no order: they are sorted
    here, so that the same releases give the same value.

    ones: shape (releases, levels), int32, read-only, each in 0..buckets. counts: one for each row, None where the
    release has no noisy count. Raises UsageError where the two do not fit.
    """

    ones: NDArray[np.int32]
    counts: tuple[NoisyCount | None, ...]

    def __post_init__(self) -> None:
        if self.ones.ndim != 2 or len(self.ones) != len(self.counts):
            raise UsageError(f"sizes: ones of shape {self.ones.shape} do not fit {len(self.counts)} counts")
        if self.ones.size and int(self.ones.min()) < 0:
            raise UsageError("sizes: a negative number of ones")
        rows = self.ones.tolist()
        order = sorted(range(len(rows)), key=lambda row: (rows[row], _sortable(self.counts[row])))
        object.__setattr__(self, "ones", np.ascontiguousarray(self.ones[order], np.int32))
        object.__setattr__(self, "counts", tuple(self.counts[row] for row in order))
        self.ones.setflags(write=False)

    @classmethod
    def of(cls, sketches: Sequence[SfmSketch]) -> WindowSizes:
        """Of one or more sketches of one shape."""
        return cls(np.array([sketch.ones() for sketch in sketches]), tuple(sketch.count for sketch in sketches))

    @classmethod
    def joined(cls, parts: Iterable[WindowSizes]) -> WindowSizes:
        """Of the releases of all parts, at least one."""
        several = list(parts)
        counts = tuple(count for part in several for count in part.counts)
        return cls(np.concatenate([part.ones for part in several]), counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WindowSizes):
            return NotImplemented
        return self.counts == other.counts and np.array_equal(self.ones, other.ones)

    __hash__ = None  # type: ignore[assignment]


def _sortable(count: NoisyCount | None) -> tuple[int | Decimal, ...]:
    return () if count is None else (count.value, count.epsilon)
