"""Records that stand in one text, each in a line of its own: it is cut out only when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

MAX_BLOCK_BYTES = 1 << 23
"""More are not joined to one text."""


class Lines(Sequence[bytes]):
    """The records in the lines of a text.

    starts, ends: shape (n,), int64: where in the text each record lies. No record is empty or holds a newline. Outside
    of them the text has newlines, one or more between two records, and carriage returns before newlines.
    """

    __slots__ = ("ends", "starts", "text")

    def __init__(self, text: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        self.text, self.starts, self.ends = text, starts, ends

    @staticmethod
    def of(records: Sequence[bytes | None]) -> Lines | None:
        """These records; None where one is missing, empty or holds a newline, or all are more than MAX_BLOCK_BYTES."""
        if isinstance(records, Lines):
            return records
        try:
            lengths = lengths_of(records)  # type: ignore[arg-type]  # None raises TypeError
        except TypeError:
            return None
        if not lengths.all() or int(lengths.sum()) > MAX_BLOCK_BYTES:
            return None
        text = b"\n".join(records)  # type: ignore[arg-type]
        if text.count(b"\n") >= max(1, len(records)):
            return None
        ends = np.cumsum(lengths + 1) - 1
        return Lines(text, ends - lengths, ends)

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, place: int) -> bytes: ...
    @overload
    def __getitem__(self, place: slice) -> Lines: ...
    def __getitem__(self, place: int | slice) -> bytes | Lines:
        """One record, or those of a slice of consecutive ones."""
        starts, ends = self.starts[place], self.ends[place]
        if not isinstance(place, slice):
            return self.text[starts:ends]
        if len(starts) == len(self):
            return self
        first, behind = (int(starts[0]), int(ends[-1])) if len(starts) else (0, 0)
        return Lines(self.text[first:behind], starts - first, ends - first)

    def __iter__(self) -> Iterator[bytes]:
        text = self.text
        return (text[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True))

    def all_between(self, first: bytes, last: bytes) -> bool:
        """Whether each record begins with one byte and ends with the other."""
        text = np.frombuffer(self.text, np.uint8)
        return bool((text[self.starts] == first[0]).all() and (text[self.ends - 1] == last[0]).all())

    def lengths(self) -> NDArray[np.int64]:
        """Shape (n,): the length of each record."""
        return self.ends - self.starts


def lengths_of(records: Sequence[bytes]) -> NDArray[np.int64]:
    """Shape (n,): the length of each record."""
    return records.lengths() if isinstance(records, Lines) else np.fromiter(map(len, records), np.int64, len(records))
