"""JSON lines of one file, gzip file or standard input as record batches, read in place: nothing is copied or indexed.

A record is a line without its newline and one carriage return before that; an empty line is no record. Its offset is
the position of its first byte in the (decompressed) stream, so every committed offset is the start of a line, and a
file that no longer has a line starting there was replaced. What was read before is known again by its mark
(input_mark.py), so that another file under the same name is refused. All records are of partition 0, have no key, and
arrive at their event time. So a line is given whole, however long a record may be: its time stands anywhere in it. Of
a line of more than MAX_LINE_BYTES only so many bytes are kept, and whoever reads it must take it as it stands.

The bytes after the last newline are a record only if the input is declared complete: otherwise a writer may be in the
middle of them, and they stay unread until their newline comes. Standard input cannot go back: a re-run must be fed the
same bytes from the beginning, and what was committed is skipped.
"""

from __future__ import annotations

from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import UsageError
from sfm_stream.transport.files.bytestream import ByteStream
from sfm_stream.transport.files.input_mark import SPAN_BYTES, InputMarker
from sfm_stream.types import InputEnd, RecordBatch

CHUNK_BYTES = 1 << 19
MAX_LINE_BYTES = 17 << 20
"""More than the longest record that a configuration may allow."""
SKIP_BYTES = 1 << 20
"""Read and thrown away in one call, on the way to an offset that cannot be jumped to."""
NEWLINE, RETURN = 10, 13


class LineBatch:
    """A RecordBatch of whole lines. Two passes over its bytes at most, each at the first use of what it gives.

    A line of more than `max_line_bytes` has its first max_line_bytes as its value.
    """

    def __init__(self, data: bytes, first: int, next_offset: int, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self.partition = 0
        self.first = first
        self.next_offset = next_offset
        self._data = data
        self._max_line_bytes = max_line_bytes

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
        data = self._data
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").removesuffix(b"\r")
        lines = data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        if len(lines) != self.count:
            lines = [line for line in lines if line]
        limit = self._max_line_bytes
        if len(data) > limit:
            lines = [line[:limit] for line in lines]
        return cast(list[bytes | None], lines)

    @cached_property
    def _offsets(self) -> NDArray[np.int64]:
        raw = np.frombuffer(self._data, np.uint8)
        ends = np.flatnonzero(raw == NEWLINE)
        if len(raw) and raw[-1] != NEWLINE:
            ends = np.append(ends, len(raw))
        starts = np.zeros_like(ends)
        starts[1:] = ends[:-1] + 1
        lengths = ends - starts
        blank = lengths == 0
        if b"\r" in self._data:
            blank |= (lengths == 1) & (raw[np.minimum(starts, len(raw) - 1)] == RETURN)
        if blank.any():
            starts = starts[~blank]
        return (starts + self.first).astype(np.int64, copy=False)


class LineInput:
    """The lines of `path` ("-": standard input), about `chunk_bytes` of them a batch.

    complete: the input ends for ever where it ends now. whole: it is read from its beginning each time, and its mark
    is of all its bytes. Memory: a few chunks, and with long lines about four times max_line_bytes: a line is joined
    from its chunks and cut out of its batch. Raises ConfigError naming `input.path` where it cannot be opened.
    """

    partitions = 1
    _parts: list[bytes]
    _tail_bytes: int
    _too_long: bool
    _ready: bytes
    _inside_line: bool
    _ended: bool

    def __init__(
        self,
        path: str,
        *,
        complete: bool,
        whole: bool = False,
        max_line_bytes: int = MAX_LINE_BYTES,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> None:
        if max_line_bytes < 1 or chunk_bytes < 1:
            raise UsageError(f"max_line_bytes {max_line_bytes} and chunk_bytes {chunk_bytes} must be at least 1")
        self._complete = complete
        self._max_line_bytes = max_line_bytes
        self._chunk_bytes = chunk_bytes
        self._next = 0
        self._route: list[int] = []
        self._on_the_way = False
        self._drop_tail()
        self._stream = ByteStream(path)
        self._marker = InputMarker(self._stream.name, whole=whole)
        self._mark = ""

    def read(self, partition: int) -> RecordBatch | InputEnd | None:
        """The next batch (maybe of no records), the end, or None: not yet, ask again.

        Raises StateError where the input is shorter than an offset sought, has no line starting there, is a truncated
        or damaged gzip, or cannot be read.
        """
        if self._ended:
            return InputEnd(0, True)
        if self._route and not self._arrive():
            return None
        chunk = self._ready or self._stream.read(self._chunk_bytes)
        self._ready = b""
        if chunk is None:
            return None
        if not chunk:
            return self._at_end()
        if self._inside_line:
            raise self._marker.other(
                f"no line starts at the committed byte {self._next}, unless it went on after it had been declared "
                "complete"
            )
        return self._end_long_line(chunk) if self._too_long else self._cut(chunk)

    def seek(self, partition: int, offset: int) -> None:
        """The next batch starts at `offset`, the start of a line. What is wrong with it is found by the next read."""
        if partition != 0 or offset < 0:
            raise UsageError(f"there is no offset {offset} in partition {partition} of lines")
        expected = self._marker.expected
        if not self._route and offset == self._next and expected is None:
            return
        stops = [offset]
        if self._stream.regular and not self._marker.whole:
            # A file can tell at once whether it is the right one, before anything of it is counted again.
            stops = [min(SPAN_BYTES, max(offset, expected or 0)), expected or offset, offset]
        self._route = [stop for at, stop in enumerate(stops) if stop != (stops[at - 1] if at else self._next)]
        self._on_the_way = False
        self._ended = False

    def expect(self, mark: str) -> None:
        """As in MarkedInput; before seek."""
        self._marker.expect(mark)

    def mark(self) -> str | None:
        """As in MarkedInput."""
        return self._mark if self._marker.expected is None else None

    def position(self) -> int:
        """Bytes on disk read so far (of a gzip file: compressed ones)."""
        return self._stream.consumed()

    def size(self) -> int | None:
        """Bytes on disk, None for a pipe."""
        return self._stream.size()

    def close(self) -> None:
        self._stream.close()

    def _drop_tail(self) -> None:
        """Forget what was read beyond self._next: the parts of the line begun, and the chunk behind a long line."""
        self._parts = []
        self._tail_bytes = 0
        self._too_long = False
        self._ready = b""
        self._inside_line = False
        self._ended = False

    def _arrive(self) -> bool:
        """One bounded stretch of the way to the sought offset; True once there."""
        stream, marker, target = self._stream, self._marker, self._route[0]
        if not self._on_the_way:
            self._drop_tail()
            # Once for each stop: from then on the position ascends to it.
            if target < stream.position or (stream.regular and not marker.whole):
                stream.rewind(0 if marker.whole else max(0, target - SPAN_BYTES))
                marker.jump(stream.position)
            self._on_the_way = True
        if stream.position < target:
            skipped = stream.read(min(SKIP_BYTES, target - stream.position))
            if skipped == b"":
                raise marker.other(
                    f"reading should go on at byte {target}, but it has {stream.position} bytes: it was truncated or "
                    "replaced"
                )
            marker.take(skipped or b"")
        if stream.position < target:
            return False
        self._on_the_way = False
        del self._route[0]
        if self._route:
            return False
        self._next = target
        self._mark = marker.mark()
        # The end of a complete input needs no newline before it; a byte that follows it shows that the input changed.
        self._inside_line = target > 0 and stream.last != NEWLINE
        return True

    def _cut(self, chunk: bytes) -> RecordBatch | None:
        """The whole lines of the tail and this chunk; what follows the last newline becomes the tail."""
        cut = chunk.rfind(b"\n") + 1
        batch = None
        if cut:
            batch = self._batch(b"".join((*self._parts, memoryview(chunk)[:cut])))
            self._parts = []
            self._tail_bytes = 0
        if cut < len(chunk):
            self._parts.append(chunk[cut:])
            self._tail_bytes += len(chunk) - cut
        if self._tail_bytes >= self._head_bytes:
            self._too_long = True
            begun = b"".join(self._parts)
            self._marker.take(begun)
            self._parts = [begun[: self._head_bytes]]
        return batch

    def _end_long_line(self, chunk: bytes) -> RecordBatch | None:
        """A batch of the head of the long line if its newline is in this chunk; the rest of the chunk is next."""
        cut = chunk.find(b"\n") + 1
        self._tail_bytes += cut or len(chunk)
        self._marker.take(chunk[:cut] if cut else chunk)
        if not cut:
            return None
        batch = self._batch(self._parts[0], self._tail_bytes)
        self._drop_tail()
        self._ready = chunk[cut:]
        return batch

    def _at_end(self) -> RecordBatch | InputEnd:
        if not self._complete:
            self._marker.require_all()
            return InputEnd(0, False)
        tail, length = b"".join(self._parts), self._tail_bytes
        batch = self._batch(tail, length if self._too_long else None) if tail else None
        self._drop_tail()
        self._ended = True
        self._marker.require_all()
        self._mark = self._marker.mark()
        return batch or InputEnd(0, True)

    @property
    def _head_bytes(self) -> int:
        """As much of a line as is kept, and one byte more, which a carriage return at its end may be."""
        return self._max_line_bytes + 1

    def _batch(self, data: bytes, length: int | None = None) -> LineBatch:
        """length: of a line of which only the head is left, and whose bytes the mark has taken already."""
        first = self._next
        if length is None:
            self._marker.take(data)
        self._next += len(data) if length is None else length
        self._mark = self._marker.mark()
        return LineBatch(data, first, self._next, self._max_line_bytes)
