"""The mark of an input: it shows whether the input is still the one that was read before, or another of the same name.

A mark holds how many bytes were read, and a digest of them. Where reading goes on from a position, the digest is of the
first and the last SPAN_BYTES of them, so that two short reads suffice to compare a file of any size. Where an input is
counted whole, it is of all of them. A mark does not depend on how the bytes are stored: a file that was renamed or
compressed since has the same mark.
"""

from __future__ import annotations

import hashlib
import re
from typing import Protocol

import xxhash

from sfm_stream.errors import StateError

SPAN_BYTES = 4096
_FORM = re.compile(r"(ends|whole):(\d+):([0-9a-f]{32})")


class MarkedInput(Protocol):
    """An input that can be compared with the one that was read before."""

    def expect(self, mark: str) -> None:
        """To be called before the first read: the input has to begin with the bytes that the mark was made of."""
        ...

    def mark(self) -> str | None:
        """The mark of all bytes that were given out; None while the expected mark is not compared yet."""
        ...


class InputMarker:
    """Takes the bytes of an input in their order, and makes the mark of those taken.

    whole: the digest is of all bytes. They are then taken from the first one on, and no byte may follow the expected
    ones.
    """

    def __init__(self, name: str, *, whole: bool) -> None:
        self.name, self.whole = name, whole
        self.position = 0
        self._head = self._tail = b""
        self._hash = xxhash.xxh3_128()
        self._expected: tuple[int, str] | None = None
        self._last_end: int | None = None
        """Where the input ended when it was counted whole, once the mark of that is compared."""

    @property
    def expected(self) -> int | None:
        """How many bytes the expected mark is of; None where no mark is left to be compared."""
        return self._expected[0] if self._expected else None

    def expect(self, mark: str) -> None:
        """Compare with this mark once as many bytes are taken; "": with none. A mark that differs is a StateError."""
        if not mark:
            return
        form = _FORM.fullmatch(mark)
        if form is None or (form[1] == "whole") != self.whole:
            raise StateError(f"{self.name}: the committed state has a mark of its input that cannot be read: {mark!r}")
        self._expected = int(form[2]), mark
        self._compare()

    def jump(self, position: int) -> None:
        """The byte taken next is the one at this position. Bytes that are passed over do not enter the mark."""
        self.position, self._tail = position, b""
        if position == 0:
            self._head, self._hash = b"", xxhash.xxh3_128()

    def take(self, data: bytes) -> None:
        """The next bytes. Raises StateError where they show that this is not the expected input."""
        if self._expected is not None and self.position + len(data) > self._expected[0]:
            cut = self._expected[0] - self.position
            self._take(data[:cut])
            data = data[cut:]
        if data:
            self._take(data)

    def mark(self) -> str:
        if self.whole:
            return f"whole:{self.position}:{self._hash.hexdigest()}"
        ends = hashlib.blake2b(digest_size=16)
        # No byte lies in both, so that short inputs are read once.
        for part in (self._head, self._tail[max(0, len(self._head) + len(self._tail) - self.position) :]):
            ends.update(part)
        return f"ends:{self.position}:{ends.hexdigest()}"

    def require_all(self) -> None:
        """The input ends here. Raises StateError where more of it was read before."""
        if self._expected is not None:
            raise self.other_input(f"{self._expected[0]} bytes of it were read, and it has {self.position} only")

    def other_input(self, difference: str) -> StateError:
        """The error for an input that is not the one that was read before."""
        if self.whole:
            return StateError(
                f"{self.name}: this is not the input that was counted before: {difference}. An input that is complete "
                "is counted once and for all. Put back what was there, to finish it. What is new needs a pipeline.id "
                "of its own, or a new pipeline.epoch with window.start behind all that was released"
            )
        return StateError(
            f"{self.name}: this is not the input that was read before: {difference}. It was replaced, rewritten or "
            "truncated, as by a rotation of logs. To finish what was begun, set input.path to the file that holds it "
            "now (its rotated name). The new one needs a pipeline.id of its own, or a new pipeline.epoch with "
            "window.start behind all that was released"
        )

    def _take(self, data: bytes) -> None:
        if self._last_end is not None and data:
            raise self.other_input(f"it had {self._last_end} bytes, and now goes on")
        if self.position == len(self._head) < SPAN_BYTES:
            self._head += data[: SPAN_BYTES - len(self._head)]
        self._tail = data[-SPAN_BYTES:] if len(data) >= SPAN_BYTES else (self._tail + data)[-SPAN_BYTES:]
        if self.whole:
            self._hash.update(data)
        self.position += len(data)
        self._compare()

    def _compare(self) -> None:
        if self._expected is None or self.position != self._expected[0]:
            return
        position, mark = self._expected
        if self.mark() != mark:
            raise self.other_input(f"its first {position} bytes are others")
        self._expected = None
        if self.whole:
            self._last_end = position
