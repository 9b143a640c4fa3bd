"""JSON lines of one file, gzip file or standard input as record batches. They are read in place, without copy or index.

A record is a line without its newline and one carriage return before that; an empty line is no record. Its offset is
the position of its first byte in the (decompressed) stream. So every committed offset is the start of a line, and a
file in which no line starts there was replaced. A mark (input_mark.py) of what was read before shows whether another
file stands under the same name; such a file is refused. All records are of partition 0, have no key, and arrive at
their event time.

A line is given whole, however long a record may be, because its time may stand anywhere in it. Of a line of more than
MAX_LINE_BYTES only so many bytes are kept, and its reader must take it as it stands.

The bytes after the last newline are a record only if the input is declared complete. Otherwise a writer may be in the
middle of them, and they stay unread until their newline comes. Standard input cannot go back: a re-run must be fed the
same bytes from the beginning, and what was committed is skipped.
"""

from __future__ import annotations

from sfm_stream.errors import UsageError
from sfm_stream.transport.files.bytestream import ByteStream
from sfm_stream.transport.files.input_mark import SPAN_BYTES, InputMarker
from sfm_stream.transport.files.line_batch import MAX_LINE_BYTES, NEWLINE, LineBatch
from sfm_stream.transport.files.line_state import ON_THE_WAY, TRANSITIONS, LineEvent, LineState, stops_to
from sfm_stream.types import InputEnd, RecordBatch

CHUNK_BYTES = 1 << 20
SKIP_BYTES = 1 << 20
"""Read and thrown away in one call, on the way to an offset that cannot be jumped to."""


class LineInput:
    """The lines of `path` ("-": standard input), about `chunk_bytes` of them a batch.

    complete: the input ends for ever where it ends now. whole: it is read from its beginning each time, and its mark
    is of all its bytes. Memory: a few chunks, and with long lines about four times max_line_bytes: a line is joined
    from its chunks and cut out of its batch. Raises ConfigError naming `input.path` where it cannot be opened.
    """

    partitions = 1

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
        self._state = LineState.IN_LINES
        self._next = 0
        """Offset of the next batch. What the stream has given beyond it is in `_begun` and `_unread`."""
        self._stops: list[int] = []
        """Positions still to be reached, the sought offset last; none where it is reached."""
        self._begun: list[bytes] = []
        """Parts of the line begun; of a long line one part, its head."""
        self._begun_bytes = 0
        """Length of the line begun so far, of a long line all of it."""
        self._unread = b""
        """The rest of a chunk, behind the end of a long line."""
        self._stream = ByteStream(path)
        self._marker = InputMarker(self._stream.name, whole=whole)
        self._mark = ""

    def seek(self, partition: int, offset: int) -> None:
        """The next batch starts at `offset`, the start of a line. What is wrong with it is found by the next read."""
        if partition != 0 or offset < 0:
            raise UsageError(f"there is no offset {offset} in partition {partition} of lines")
        expected = self._marker.expected
        if self._state not in ON_THE_WAY and offset == self._next and expected is None:
            return
        any_position = self._stream.regular and not self._marker.whole
        stops = stops_to(offset, expected, SPAN_BYTES) if any_position else [offset]
        if self._state not in ON_THE_WAY and stops[0] == self._next:
            del stops[0]
        self._stops = stops
        if stops:
            self._take(LineEvent.SOUGHT)

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

    def read(self, partition: int) -> RecordBatch | InputEnd | None:
        """The next batch (maybe of no records), the end, or None: not yet, ask again.

        Raises StateError where the input is shorter than an offset sought, has no line starting there, is a truncated
        or damaged gzip, or cannot be read.
        """
        if self._state is LineState.ENDED:
            return InputEnd(0, True)
        if self._state in ON_THE_WAY:
            self._move()
            if self._state in ON_THE_WAY:
                return None
        chunk = self._unread or self._stream.read(self._chunk_bytes)
        self._unread = b""
        if chunk is None:
            return None
        if not chunk:
            return self._at_end()
        if self._state is LineState.INSIDE_LINE:
            raise self._marker.other_input(
                f"no line starts at the committed byte {self._next}, unless it went on after it had been declared "
                "complete"
            )
        return self._end_long_line(chunk) if self._state is LineState.IN_LONG_LINE else self._cut(chunk)

    def _take(self, event: LineEvent) -> None:
        self._state = TRANSITIONS[self._state, event]

    def _move(self) -> None:
        """One bounded stretch of the way to the next stop."""
        stream, marker, stop = self._stream, self._marker, self._stops[0]
        if self._state is LineState.MOVING:
            self._forget_begun()
            if stop < stream.position or (stream.regular and not marker.whole):
                stream.rewind(0 if marker.whole else max(0, stop - SPAN_BYTES))
                marker.jump(stream.position)
            self._take(LineEvent.HEADED_FOR_STOP)
        if stream.position < stop:
            skipped = stream.read(min(SKIP_BYTES, stop - stream.position))
            if skipped == b"":
                raise marker.other_input(
                    f"reading should go on at byte {stop}, but it has {stream.position} bytes: it was truncated or "
                    "replaced"
                )
            marker.take(skipped or b"")
        if stream.position >= stop:
            self._arrive(stop)

    def _arrive(self, stop: int) -> None:
        del self._stops[0]
        if self._stops:
            self._take(LineEvent.REACHED_STOP)
            return
        self._next = stop
        self._mark = self._marker.mark()
        # A complete input may end without a newline. A byte after that end shows that the input changed.
        inside = stop > 0 and self._stream.last != NEWLINE
        self._take(LineEvent.REACHED_INSIDE if inside else LineEvent.REACHED_LINE)

    def _forget_begun(self) -> None:
        """Forget what was read beyond the offset of the next batch."""
        self._begun = []
        self._begun_bytes = 0
        self._unread = b""

    def _cut(self, chunk: bytes) -> RecordBatch | None:
        """A batch of the whole lines in the line begun and this chunk. What follows the last newline begins a line."""
        cut = chunk.rfind(b"\n") + 1
        batch = None
        if cut:
            batch = self._batch(b"".join((*self._begun, memoryview(chunk)[:cut])))
            self._forget_begun()
        if cut < len(chunk):
            self._begun.append(chunk[cut:])
            self._begun_bytes += len(chunk) - cut
        if self._begun_bytes >= self._head_bytes:
            begun = b"".join(self._begun)
            self._marker.take(begun)
            self._begun = [begun[: self._head_bytes]]
            self._take(LineEvent.OUTGREW)
        return batch

    def _end_long_line(self, chunk: bytes) -> RecordBatch | None:
        """A batch of the head of the long line if its newline is in this chunk. The rest of the chunk is read next."""
        cut = chunk.find(b"\n") + 1
        self._begun_bytes += cut or len(chunk)
        self._marker.take(chunk[:cut] if cut else chunk)
        if not cut:
            return None
        batch = self._batch_of_long_line()
        self._forget_begun()
        self._unread = chunk[cut:]
        self._take(LineEvent.NEWLINE)
        return batch

    def _at_end(self) -> RecordBatch | InputEnd:
        """The last line, if the input is complete and does not end in a newline; else the end."""
        if not self._complete:
            self._marker.require_all()
            return InputEnd(0, False)
        batch: RecordBatch | None = None
        if self._state is LineState.IN_LONG_LINE:
            batch = self._batch_of_long_line()
        elif self._begun:
            batch = self._batch(b"".join(self._begun))
        self._forget_begun()
        self._take(LineEvent.END)
        self._marker.require_all()
        self._mark = self._marker.mark()
        return batch or InputEnd(0, True)

    @property
    def _head_bytes(self) -> int:
        """As much of a line as is kept, and one byte more, which a carriage return at its end may be."""
        return self._max_line_bytes + 1

    def _batch(self, data: bytes) -> LineBatch:
        self._marker.take(data)
        return self._batch_to(self._next + len(data), data)

    def _batch_of_long_line(self) -> LineBatch:
        """Its bytes are in the mark already."""
        return self._batch_to(self._next + self._begun_bytes, self._begun[0])

    def _batch_to(self, end: int, data: bytes) -> LineBatch:
        first, self._next = self._next, end
        self._mark = self._marker.mark()
        return LineBatch(data, first, end, self._max_line_bytes)
