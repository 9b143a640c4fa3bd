"""Open windows of one partition, by columns. SECRET: they hold which cells the items of each key have set.

A window holds distinct (key id, cell) pairs. Keys with few cells share one array of 4-byte cells, sorted by key. A key
whose cells would take more room than a bitmap has a bitmap of its own. New pairs wait in a short unsorted queue, so
that an event costs an append and its share of one sort.

Several spans that are released have a store each. A record is kept once, in the finest window that it counts in; when
that window is closed, its cells are absorbed by the coarser ones around it.
"""

from __future__ import annotations

from collections.abc import Set
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.shape import SketchShape
from sfm_stream.windows.cells_by_key import CellsByKey
from sfm_stream.windows.pairs import SHIFT, cells_of, distinct, keys_of, pairs_of, set_bits

_QUEUE_MIN = 1 << 14
_PIECE = 1 << 13
"""Cells that are merged at a time."""
_ROWS_A_VISIT = 128
"""Rows of a window that make a visit to it worth while; a visit costs some microseconds."""


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
        self.addpairs_of(pairs_of(key_ids, cells))

    def addpairs_of(self, pairs: NDArray[np.uint64]) -> None:
        """Set one cell for each row, given as pairs_of()."""
        self._queue.append(pairs)
        self._queued += len(pairs)
        if self._queued > max(_QUEUE_MIN, len(self._cells) // 4):
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
        """Sort what waits in the queue into the columns, piece by piece, as the pairs take ten times the room."""
        if not self._queued:
            return
        fresh = np.concatenate(self._queue)
        self._queue, self._queued, self._ends = [], 0, None
        fresh.sort()
        fresh = distinct(fresh)
        if self._bitmaps:
            fresh = self._into_bitmaps(fresh)
        ends = np.cumsum(self._counts, dtype=np.int64)
        most = len(self._keys) + len(fresh)
        keys, counts = np.empty(most, np.int32), np.empty(most, np.uint32)
        cells = np.empty(len(self._cells) + len(fresh), np.uint32)
        low = at = placed = filled = 0
        while low < len(self._keys) or at < len(fresh):
            before = int(ends[low - 1]) if low else 0
            high = max(low + 1, int(np.searchsorted(ends, before + _PIECE, "right")))
            behind = len(fresh)
            if high < len(ends):
                behind = int(np.searchsorted(fresh, self._keys[high].astype(np.uint64) << SHIFT))
            held = np.repeat(self._keys[low:high].astype(np.uint64) << SHIFT, self._counts[low:high])
            held |= self._cells[before : before + len(held)]
            # Two sorted runs: the stable sort merges them in one pass.
            pairs = np.concatenate([held, fresh[at:behind]])
            pairs.sort(kind="stable")
            some_keys, some_counts, some_cells = self._split(distinct(pairs))
            keys[placed : placed + len(some_keys)] = some_keys
            counts[placed : placed + len(some_keys)] = some_counts
            cells[filled : filled + len(some_cells)] = some_cells
            low, at, placed, filled = high, behind, placed + len(some_keys), filled + len(some_cells)
        for column, size in ((keys, placed), (counts, placed), (cells, filled)):
            column.resize(size, refcheck=False)  # gives back what was not needed, without a copy
        self._keys, self._counts, self._cells = keys, counts, cells

    def _into_bitmaps(self, pairs: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Set the pairs of keys that have a bitmap; returns the others."""
        keys = keys_of(pairs)
        others = np.ones(len(pairs), np.bool_)
        dense = np.fromiter(sorted(self._bitmaps), np.int32, len(self._bitmaps))
        for key_id, low, high in zip(
            dense.tolist(), np.searchsorted(keys, dense, "left"), np.searchsorted(keys, dense, "right"), strict=True
        ):
            set_bits(self._bitmaps[key_id], pairs[low:high])
            others[low:high] = False
        return pairs[others]

    def _split(self, pairs: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint32]]:
        """Sorted distinct pairs as keys, counts and cells; keys that outgrew 4 bytes a cell become bitmaps instead."""
        keys, cells = keys_of(pairs), cells_of(pairs)
        borders = np.concatenate(([0], np.flatnonzero(keys[1:] != keys[:-1]) + 1, [len(keys)]))
        starts, counts = borders[:-1], borders[1:] - borders[:-1]
        large = counts > self.shape.nbytes // 4
        for start, count in zip(starts[large].tolist(), counts[large].tolist(), strict=True):
            bitmap = np.zeros(self.shape.nbytes, np.uint8)
            set_bits(bitmap, pairs[start : start + count])
            self._bitmaps[int(keys[start])] = bitmap
        if large.any():
            cells = cells[np.repeat(~large, counts)]
            starts, counts = starts[~large], counts[~large]
        return keys[starts], counts, cells

    def _move_to_bitmaps(self) -> None:
        """Move the cells of keys that have a bitmap by now into it."""
        moved = np.isin(self._keys, np.fromiter(self._bitmaps, np.int32, len(self._bitmaps)))
        if not moved.any():
            return
        ends = np.cumsum(self._counts, dtype=np.int64)
        for place in np.flatnonzero(moved).tolist():
            cells = self._cells[ends[place] - self._counts[place] : ends[place]]
            set_bits(self._bitmaps[int(self._keys[place])], cells)
        self._cells = self._cells[np.repeat(~moved, self._counts)]
        self._keys, self._counts = self._keys[~moved], self._counts[~moved]


class WindowStore:
    """The open windows of one span of one partition by their start.

    Rows that are of several windows wait in a queue that all windows share, and are sorted by window many at a time:
    so a batch costs no visit to each of its windows.
    """

    __slots__ = ("_bytes", "_queue", "_queued", "_starts", "_windows", "shape")

    def __init__(self, shape: SketchShape) -> None:
        self.shape = shape
        self._windows: dict[int, OpenWindow] = {}
        self._starts = np.empty(0, np.int64)
        """The keys of _windows, ascending."""
        self._queue: list[tuple[NDArray[np.int64], NDArray[np.uint64]]] = []
        self._queued = 0
        self._bytes: int | None = 0
        """Of the windows, as far as that is known: whoever is given a window may change it."""

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
        pairs = pairs_of(key_ids, cells)
        if starts_ms[0] == starts_ms[-1] and (starts_ms == starts_ms[0]).all():
            self._open(starts_ms[:1], offsets)
            self._give(int(starts_ms[0]), pairs)
            return
        self._open(starts_ms, offsets)
        self._queue.append((starts_ms, pairs))
        self._queued += len(pairs)
        if self._queued > max(_QUEUE_MIN, _ROWS_A_VISIT * len(self._windows)):
            self._sort_in()

    def absorb(self, start_ms: int, finer: OpenWindow) -> None:
        """Set every cell of a finer window in the one that starts at start_ms."""
        self._open(np.array([start_ms]), np.array([finer.first_offset]))
        self._windows[start_ms].absorb(finer)
        self._bytes = None

    def first_offset_of(self, start_ms: int) -> int:
        """Offset of the first record that an open window got."""
        return self._windows[start_ms].first_offset

    def get(self, start_ms: int) -> OpenWindow | None:
        """The window with all of its rows; None where none is open."""
        self._sort_in()
        self._bytes = None
        return self._windows.get(start_ms)

    def drop(self, start_ms: int) -> None:
        """Forget a window, once what was released of it is committed."""
        self._sort_in()
        if self._windows.pop(start_ms, None) is not None:
            self._starts = self._starts[self._starts != start_ms]
            self._bytes = None

    def starts(self) -> list[int]:
        """Starts of the open windows, ascending."""
        return self._starts.tolist()

    def starts_without(self, known: Set[int]) -> list[int]:
        """Starts of the open windows that are none of these, ascending."""
        return sorted(self._windows.keys() - known)

    def first_offset(self) -> int | None:
        """Offset of the earliest record that an open window holds."""
        return min((window.first_offset for window in self._windows.values()), default=None)

    def live_keys(self) -> NDArray[np.int32]:
        """Ids of all keys in any open window."""
        self._sort_in()
        self._bytes = None
        ids = [window.key_ids() for window in self._windows.values()]
        return distinct(np.sort(np.concatenate(ids))) if ids else np.empty(0, np.int32)

    def raw_bytes(self) -> int:
        """Bytes of sketch state held for all windows."""
        if self._bytes is None:
            self._bytes = sum(window.raw_bytes for window in self._windows.values())
        return self._bytes + 16 * self._queued

    def compact(self) -> None:
        """Let nothing wait in a queue, so that raw_bytes() is of distinct cells alone."""
        self._sort_in()
        self._bytes = None
        for window in self._windows.values():
            window.compact()

    def _open(self, starts_ms: NDArray[np.int64], offsets: NDArray[np.int64]) -> None:
        """Open the windows of these rows that are not open yet."""
        known = self._starts
        if len(known):
            new = known[np.minimum(np.searchsorted(known, starts_ms), len(known) - 1)] != starts_ms
            if not new.any():
                return
            starts_ms, offsets = starts_ms[new], offsets[: len(new)][new]
        fresh, firsts = np.unique(starts_ms, return_index=True)
        for start_ms, offset in zip(fresh.tolist(), offsets[firsts].tolist(), strict=True):
            self._windows[start_ms] = OpenWindow(self.shape, offset)
        self._starts = np.array(sorted(self._windows), np.int64)

    def _give(self, start_ms: int, pairs: NDArray[np.uint64]) -> None:
        """Give rows to their window."""
        window, before = self._windows[start_ms], self._windows[start_ms].raw_bytes
        window.addpairs_of(pairs)
        if self._bytes is not None:
            self._bytes += window.raw_bytes - before

    def _sort_in(self) -> None:
        """Give the rows that wait to their windows."""
        if not self._queued:
            return
        starts_ms = np.concatenate([starts_ms for starts_ms, _ in self._queue])
        order = np.argsort(starts_ms)
        pairs = np.concatenate([pairs for _, pairs in self._queue])[order]
        self._queue, self._queued = [], 0
        starts_ms = starts_ms[order]
        borders = [0, *(np.flatnonzero(starts_ms[1:] != starts_ms[:-1]) + 1).tolist(), len(starts_ms)]
        for start_ms, (low, high) in zip(starts_ms[borders[:-1]].tolist(), pairwise(borders), strict=True):
            # A copy: a window that keeps its rows for long must not keep those of the others.
            self._give(start_ms, pairs[low:high].copy())
