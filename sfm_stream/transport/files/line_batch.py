"""Whole lines of an input as a RecordBatch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfm_stream.events.lines import Lines

MAX_LINE_BYTES = 17 << 20
"""More than the longest record that a configuration may allow."""
NEWLINE, RETURN = 10, 13


class LineBatch:
    """Implements LineTexts: whole lines, which are looked for at the first use of what they give.

    A line of more than `max_line_bytes` has its first max_line_bytes as its value.
    """

    def __init__(self, data: bytes, first: int, next_offset: int, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self.partition = 0
        self.first = first
        self.next_offset = next_offset
        self.text = data
        self.max_line_bytes = max_line_bytes

    @property
    def count(self) -> int:
        return len(self._lines)

    def offsets(self) -> NDArray[np.int64]:
        """Shape (count,): position of the first byte of each record."""
        return self._lines.starts + self.first

    def arrivals(self) -> None:
        return None

    def keys(self) -> list[bytes | None]:
        return [None] * self.count

    def values(self) -> Sequence[bytes | None]:
        lines, limit = self._lines, self.max_line_bytes
        if len(self.text) > limit and bool((lines.lengths() > limit).any()):
            return [line[:limit] for line in lines]
        return lines

    @cached_property
    def _lines(self) -> Lines:
        raw = np.frombuffer(self.text, np.uint8)
        ends = np.flatnonzero(raw == NEWLINE).astype(np.int64, copy=False)
        if len(raw) and raw[-1] != NEWLINE:
            ends = np.append(ends, len(raw))
        starts = np.zeros_like(ends)
        starts[1:] = ends[:-1] + 1
        if b"\r" in self.text:
            ends = ends - ((ends > starts) & (raw[ends - 1] == RETURN))
        filled = ends > starts
        if not filled.all():
            starts, ends = starts[filled], ends[filled]
        return Lines(self.text, starts, ends)
