"""Where the reading of lines stands, and what can happen next: one table of states and events, without bytes.

    MOVING -> SKIPPING -> IN_LINES <-> IN_LONG_LINE
      ^          |  |        |             |
      +----------+  +--> INSIDE_LINE       |
     (next stop)             +-----+-------+--> ENDED

A seek leads from every state back to MOVING.
"""

from __future__ import annotations

from enum import Enum, auto


class LineState(Enum):
    IN_LINES = auto()
    """At the first byte of a line, or behind a part of a line that is short so far."""
    IN_LONG_LINE = auto()
    """Behind a part of a line that is longer than what is kept of it: only its head is kept."""
    MOVING = auto()
    """Another offset was sought, and the next stop on the way to it is still to be headed for."""
    SKIPPING = auto()
    """Reading forward to a stop; what is read is thrown away."""
    INSIDE_LINE = auto()
    """At the sought offset, which is not the start of a line. Only the end of the input may follow."""
    ENDED = auto()
    """The input is complete and was read to its end, which is its end for ever."""


class LineEvent(Enum):
    SOUGHT = auto()
    """Reading goes on at another offset."""
    HEADED_FOR_STOP = auto()
    """The stream stands at the stop or before it, so that reading forward leads there."""
    REACHED_STOP = auto()
    """The stop is reached, and another one follows."""
    REACHED_LINE = auto()
    """The last stop is reached: the sought offset, which is the start of a line."""
    REACHED_INSIDE = auto()
    """The last stop is reached: the sought offset, and the byte before it is not a newline."""
    OUTGREW = auto()
    """The line begun is longer than what is kept of it."""
    NEWLINE = auto()
    """The newline of a long line was read."""
    END = auto()
    """The end of a complete input was read."""


TRANSITIONS: dict[tuple[LineState, LineEvent], LineState] = {
    **{(state, LineEvent.SOUGHT): LineState.MOVING for state in LineState},
    (LineState.MOVING, LineEvent.HEADED_FOR_STOP): LineState.SKIPPING,
    (LineState.SKIPPING, LineEvent.REACHED_STOP): LineState.MOVING,
    (LineState.SKIPPING, LineEvent.REACHED_LINE): LineState.IN_LINES,
    (LineState.SKIPPING, LineEvent.REACHED_INSIDE): LineState.INSIDE_LINE,
    (LineState.IN_LINES, LineEvent.OUTGREW): LineState.IN_LONG_LINE,
    (LineState.IN_LONG_LINE, LineEvent.NEWLINE): LineState.IN_LINES,
    (LineState.IN_LINES, LineEvent.END): LineState.ENDED,
    (LineState.IN_LONG_LINE, LineEvent.END): LineState.ENDED,
    (LineState.INSIDE_LINE, LineEvent.END): LineState.ENDED,
}
"""The state after an event. An event that is not listed for a state cannot happen in it: a KeyError is a fault here."""
ON_THE_WAY = (LineState.MOVING, LineState.SKIPPING)
"""The sought offset is not reached yet, so that no byte read now belongs to a batch."""


def stops_to(offset: int, expected: int | None, span_bytes: int) -> list[int]:
    """Where to stop on the way to `offset` in a file that can be read from any position, `offset` last.

    expected: how many bytes the mark was made of that the input has to show again, None where none is expected.
    The mark is of the first and the last span_bytes of them. So the way leads over the end of the first span and over
    the end of the last one: a file can tell whether it is the right one before anything of it is counted again.
    """
    known = offset if expected is None else expected
    stops = [min(span_bytes, max(offset, known)), known, offset]
    return [stop for at, stop in enumerate(stops) if at == 0 or stop != stops[at - 1]]
