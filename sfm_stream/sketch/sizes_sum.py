"""The sizes of the releases of a sum while it grows, in little memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.sfm import NoisyCount
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.window_sizes import MAX_RELEASES, WindowSizes


class SizesSum:
    """The sizes of releases of one shape; of more than MAX_RELEASES it knows none."""

    __slots__ = ("_counts", "_epsilons", "_levels", "_of_counts", "_ones", "_type")

    def __init__(self, shape: SketchShape) -> None:
        self._levels, self._type = shape.levels, _type(shape)
        self._ones: bytearray | None = bytearray()
        # Of each release the value of its noisy count, and the place of its epsilon in a list; 0 and None without one.
        self._counts, self._of_counts = array("q"), array("H")
        self._epsilons: list[Decimal | None] = []

    def add(self, ones: NDArray[np.integer], noisy_counts: Iterable[NoisyCount | None]) -> None:
        """Add releases. ones: shape (releases, levels) or (levels,)."""
        if self._ones is None or len(self._counts) + ones.size // self._levels > MAX_RELEASES:
            self.forget()
            return
        self._ones += ones.astype(self._type).tobytes()
        for count in noisy_counts:
            epsilon = None if count is None else count.epsilon
            if epsilon not in self._epsilons:
                self._epsilons.append(epsilon)
            self._of_counts.append(self._epsilons.index(epsilon))
            self._counts.append(0 if count is None else count.value)

    def add_sum(self, other: SizesSum) -> None:
        """Add the releases of another sum of the same shape."""
        if other._ones is None:
            self.forget()
        else:
            self.add(np.frombuffer(bytes(other._ones), self._type), other._noisy_counts())

    def forget(self) -> None:
        """Know no sizes from here on: releases without them are added."""
        self._ones, self._counts, self._of_counts = None, array("q"), array("H")

    def sizes(self) -> WindowSizes | None:
        """Of all that was added, at least one release; None where they are not known."""
        if self._ones is None:
            return None
        ones = np.frombuffer(bytes(self._ones), self._type).reshape(-1, self._levels)
        return WindowSizes(ones, tuple(self._noisy_counts()))

    def _noisy_counts(self) -> Iterator[NoisyCount | None]:
        for value, at in zip(self._counts, self._of_counts, strict=True):
            epsilon = self._epsilons[at]
            yield None if epsilon is None else NoisyCount(value, epsilon)


def sizes_bytes(shape: SketchShape, releases: int) -> int:
    """Bytes of memory that the sizes of so many releases take at most: an eighth is room to grow."""
    each = shape.levels * np.dtype(_type(shape)).itemsize + array("q").itemsize + array("H").itemsize
    return min(releases, MAX_RELEASES) * each * 9 // 8


def _type(shape: SketchShape) -> type[np.unsignedinteger]:
    """The smallest type that holds 0 .. buckets."""
    return next(each for each in (np.uint8, np.uint16, np.uint32) if shape.buckets <= np.iinfo(each).max)
