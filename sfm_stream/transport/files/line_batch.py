"""Whole lines of an input as a RecordBatch."""

from __future__ import annotations

from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

MAX_LINE_BYTES = 17 << 20
"""More than the longest record that a configuration may allow."""
NEWLINE, RETURN = 10, 13


class LineBatch:
    """Implements LineTexts: whole lines. Two passes over its bytes at most, each at the first use of what it gives.

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
        return len(self._offsets)

    def offsets(self) -> NDArray[np.int64]:
        """Shape (count,): position of the first byte of each record."""
        return self._offsets

    def arrivals(self) -> None:
        return None

    def keys(self) -> list[bytes | None]:
        return [None] * self.count

    def values(self) -> list[bytes | None]:
        data = self.text
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").removesuffix(b"\r")
        lines = data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        if len(lines) != self.count:
            lines = [line for line in lines if line]
        limit = self.max_line_bytes
        if len(data) > limit:
            lines = [line[:limit] for line in lines]
        return cast(list[bytes | None], lines)

    @cached_property
    def _offsets(self) -> NDArray[np.int64]:
        raw = np.frombuffer(self.text, np.uint8)
        ends = np.flatnonzero(raw == NEWLINE)
        if len(raw) and raw[-1] != NEWLINE:
            ends = np.append(ends, len(raw))
        starts = np.zeros_like(ends)
        starts[1:] = ends[:-1] + 1
        lengths = ends - starts
        blank = lengths == 0
        if b"\r" in self.text:
            blank |= (lengths == 1) & (raw[np.minimum(starts, len(raw) - 1)] == RETURN)
        if blank.any():
            starts = starts[~blank]
        return (starts + self.first).astype(np.int64, copy=False)
