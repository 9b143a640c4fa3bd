"""Open windows of one partition, by columns. SECRET: they hold which cells the items of each key have set.

A window holds distinct (key id, cell) pairs. Keys with few cells share one array of 4-byte cells, sorted by key. A key
whose cells would take more room than a bitmap has a bitmap of its own. New pairs wait in a short unsorted queue, so
that an event costs an append and its share of one sort.

Several spans that are released have a store each. A record is kept once, in the finest window that it counts in; when
that window is closed, its cells are absorbed by the coarser ones around it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.folding import fold_bits, fold_cells
from sfm_stream.sketch.shape import SketchShape

_QUEUE_MIN = 1 << 16
_LOW32 = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


_Ints = TypeVar("_Ints", NDArray[np.uint64], NDArray[np.int32])


def _distinct(ascending: _Ints) -> _Ints:
    """The values of a sorted column without repetition; several times faster than np.unique, which hashes."""
    if len(ascending) < 2:
        return ascending
    keep = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=keep[1:])
    return ascending[keep]


class OpenWindow:
    """The distinct cells of every key in one window."""

    __slots__ = ("_bitmaps", "_cells", "_counts", "_ends", "_keys", "_queue", "_queued", "first_offset", "shape")

    def __init__(self, shape: SketchShape, first_offset: int) -> None:
        self.shape = shape
        self.first_offset = first_offset
        self._keys = np.empty(0, np.int32)
        self._counts = np.empty(0, np.uint32)
        self._cells = np.empty(0, np.uint32)
        self._ends: NDArray[np.int64] | None = None
        """Where the cells of each key end, once that was asked for: a window that is released is asked at each step."""
        self._queue: list[NDArray[np.uint64]] = []
        self._queued = 0
        self._bitmaps: dict[int, NDArray[np.uint8]] = {}

    def add(self, key_ids: NDArray[np.int32], cells: NDArray[np.uint32]) -> None:
        """Set one cell for each row. key_ids >= 0."""
        self._queue.append((key_ids.astype(np.uint64) << _SHIFT) | cells)
        self._queued += len(cells)
        if self._queued > max(_QUEUE_MIN, len(self._cells) // 8):
            self.compact()

    def absorb(self, finer: OpenWindow) -> None:
        """Set every cell that is set in a window of the same shape, which is left as it is."""
        finer.compact()
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(finer._counts, dtype=np.int64)])
        low = 0
        while low < len(finer._keys):  # slice by slice, so that little waits in the queue
            high = max(low + 1, int(np.searchsorted(ends, ends[low] + _QUEUE_MIN, "right")) - 1)
            self.add(np.repeat(finer._keys[low:high], finer._counts[low:high]), finer._cells[ends[low] : ends[high]])
            low = high
        if not finer._bitmaps:
            return
        self.compact()
        self._ends = None
        for key_id, bitmap in finer._bitmaps.items():
            mine = self._bitmaps.get(key_id)
            self._bitmaps[key_id] = bitmap.copy() if mine is None else mine | bitmap
        self._move_to_bitmaps()

    def key_ids(self) -> NDArray[np.int32]:
        """Shape (keys,): ids of all keys with at least one cell, ascending."""
        self.compact()
        if not self._bitmaps:
            return self._keys
        return np.sort(np.concatenate([self._keys, np.fromiter(self._bitmaps, np.int32, len(self._bitmaps))]))

    def cells_by_key(self, shape: SketchShape) -> CellsByKey:
        """Everything in the window, ready to look up one key after another, as bitmaps of this shape or a smaller."""
        self.compact()
        if self._ends is None:
            self._ends = np.cumsum(self._counts, dtype=np.int64)
        return CellsByKey(self.shape, shape, self._keys, self._ends, self._cells, self._bitmaps)

    @property
    def raw_bytes(self) -> int:
        """Bytes of sketch state held for this window."""
        sparse = self._keys.nbytes + self._counts.nbytes + self._cells.nbytes + 8 * self._queued
        return sparse + len(self._bitmaps) * self.shape.nbytes

    def compact(self) -> None:
        """Sort what waits in the queue into the columns."""
        if not self._queued:
            return
        fresh = _distinct(np.sort(np.concatenate(self._queue)))
        self._queue, self._queued, self._ends = [], 0, None
        if self._bitmaps:
            fresh = self._into_bitmaps(fresh)
        held = (np.repeat(self._keys.astype(np.uint64), self._counts) << _SHIFT) | self._cells
        # Two sorted runs: the stable sort merges them in one pass.
        self._split(_distinct(np.sort(np.concatenate([held, fresh]), kind="stable")))

    def _into_bitmaps(self, pairs: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Set the pairs of keys that have a bitmap; returns the others."""
        keys = (pairs >> _SHIFT).astype(np.int32)
        others = np.ones(len(pairs), np.bool_)
        dense = np.fromiter(sorted(self._bitmaps), np.int32, len(self._bitmaps))
        for key_id, low, high in zip(
            dense.tolist(), np.searchsorted(keys, dense, "left"), np.searchsorted(keys, dense, "right"), strict=True
        ):
            self._set(self._bitmaps[key_id], pairs[low:high])
            others[low:high] = False
        return pairs[others]

    def _split(self, pairs: NDArray[np.uint64]) -> None:
        """Store sorted distinct pairs as keys, counts and cells; keys that outgrew 4 bytes a cell become bitmaps."""
        keys = (pairs >> _SHIFT).astype(np.int32)
        cells = (pairs & _LOW32).astype(np.uint32)
        starts = np.flatnonzero(np.diff(keys, prepend=np.int32(-1)))
        counts = np.diff(starts, append=len(keys))
        large = counts > self.shape.nbytes // 4
        for start, count in zip(starts[large].tolist(), counts[large].tolist(), strict=True):
            bitmap = np.zeros(self.shape.nbytes, np.uint8)
            self._set(bitmap, pairs[start : start + count])
            self._bitmaps[int(keys[start])] = bitmap
        if large.any():
            cells = cells[np.repeat(~large, counts)]
        self._keys, self._counts, self._cells = keys[starts[~large]], counts[~large].astype(np.uint32), cells

    def _move_to_bitmaps(self) -> None:
        """Move the cells of keys that have a bitmap by now into it."""
        moved = np.isin(self._keys, np.fromiter(self._bitmaps, np.int32, len(self._bitmaps)))
        if not moved.any():
            return
        ends = np.cumsum(self._counts, dtype=np.int64)
        for place in np.flatnonzero(moved).tolist():
            cells = self._cells[ends[place] - self._counts[place] : ends[place]]
            self._set(self._bitmaps[int(self._keys[place])], cells)
        self._cells = self._cells[np.repeat(~moved, self._counts)]
        self._keys, self._counts = self._keys[~moved], self._counts[~moved]

    @staticmethod
    def _set(bitmap: NDArray[np.uint8], pairs: NDArray[np.uint64] | NDArray[np.uint32]) -> None:
        cells = (pairs & _LOW32).astype(np.uint32)
        np.bitwise_or.at(bitmap, cells >> np.uint32(3), np.uint8(1) << (cells & np.uint32(7)).astype(np.uint8))


class CellsByKey:
    """The cells of a window that takes no more events: packed bitmaps on demand, one key at a time.

    held: the shape in which the cells are held. shape: that of the bitmaps, into which they are folded.
    """

    __slots__ = ("_bitmaps", "_cells", "_ends", "_held", "_keys", "shape")

    def __init__(
        self,
        held: SketchShape,
        shape: SketchShape,
        keys: NDArray[np.int32],
        ends: NDArray[np.int64],
        cells: NDArray[np.uint32],
        bitmaps: dict[int, NDArray[np.uint8]],
    ) -> None:
        self._held, self.shape = held, shape
        self._keys, self._ends, self._cells, self._bitmaps = keys, ends, cells, bitmaps

    def bits(self, key_id: int) -> NDArray[np.uint8]:
        """Shape (shape.nbytes,): the packed bitmap of a key, all zero where it has no cell."""
        bitmap = self._bitmaps.get(key_id)
        if bitmap is not None:
            return fold_bits(bitmap, self._held, self.shape)
        bits = np.zeros(self.shape.cells, np.bool_)
        # Of the type of the column: numpy would convert the whole column to that of a Python int, for each key.
        index = int(np.searchsorted(self._keys, np.int32(key_id)))
        if index < len(self._keys) and self._keys[index] == key_id:
            cells = self._cells[self._ends[index - 1] if index else 0 : self._ends[index]]
            bits[fold_cells(cells, self._held, self.shape)] = True
        return np.packbits(bits, bitorder="little")


class WindowStore:
    """The open windows of one span of one partition by their start."""

    __slots__ = ("_windows", "shape")

    def __init__(self, shape: SketchShape) -> None:
        self.shape = shape
        self._windows: dict[int, OpenWindow] = {}

    def add(
        self,
        starts_ms: NDArray[np.int64],
        key_ids: NDArray[np.int32],
        cells: NDArray[np.uint32],
        offsets: NDArray[np.int64],
    ) -> None:
        """Set one cell for each row, in the window that starts at starts_ms. Rows are in order of offset."""
        if not len(starts_ms):
            return
        if starts_ms[0] == starts_ms[-1] and (starts_ms == starts_ms[0]).all():
            self._open(int(starts_ms[0]), int(offsets[0])).add(key_ids, cells)
            return
        # Stable: rows of one window stay in order of offset. One sort, however many windows there are.
        order = np.argsort(starts_ms, kind="stable")
        starts_ms, key_ids, cells, offsets = starts_ms[order], key_ids[order], cells[order], offsets[order]
        borders = [0, *(np.flatnonzero(np.diff(starts_ms)) + 1).tolist(), len(starts_ms)]
        for low, high in pairwise(borders):
            self._open(int(starts_ms[low]), int(offsets[low])).add(key_ids[low:high], cells[low:high])

    def absorb(self, start_ms: int, finer: OpenWindow) -> None:
        """Set every cell of a finer window in the one that starts at start_ms."""
        self._open(start_ms, finer.first_offset).absorb(finer)

    def _open(self, start_ms: int, offset: int) -> OpenWindow:
        window = self._windows.get(start_ms)
        if window is None:
            window = self._windows[start_ms] = OpenWindow(self.shape, offset)
        return window

    def get(self, start_ms: int) -> OpenWindow | None:
        return self._windows.get(start_ms)

    def drop(self, start_ms: int) -> None:
        """Forget a window, once what was released of it is committed."""
        self._windows.pop(start_ms, None)

    def starts(self) -> list[int]:
        """Starts of the open windows, ascending."""
        return sorted(self._windows)

    def first_offset(self) -> int | None:
        """Offset of the earliest record that an open window holds."""
        return min((window.first_offset for window in self._windows.values()), default=None)

    def live_keys(self) -> NDArray[np.int32]:
        """Ids of all keys in any open window."""
        ids = [window.key_ids() for window in self._windows.values()]
        return _distinct(np.sort(np.concatenate(ids))) if ids else np.empty(0, np.int32)

    def raw_bytes(self) -> int:
        return sum(window.raw_bytes for window in self._windows.values())

    def compact(self) -> None:
        """Let nothing wait in a queue, so that raw_bytes() is of distinct cells alone."""
        for window in self._windows.values():
            window.compact()
