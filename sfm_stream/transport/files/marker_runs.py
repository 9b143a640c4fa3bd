"""Runs of close markers in the order of their bytes.

A run is what one pipeline, epoch, partition and released span has published. Up to its times every marker of a run has
the same bytes; then come its start and its end, big-endian, and what has the same length in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.errors import FormatError
from sfm_stream.wire.codec import decode_marker

_UINT64 = b"\xcf"
"""The first byte of each time (docs/wire-format.md)."""


@dataclass(frozen=True, slots=True)
class MarkerRun:
    """The markers that begin with these bytes. end: lies behind all of them, and before every one that follows."""

    head: bytes
    end: bytes

    def before(self, time_ms: int) -> bytes:
        """Behind every marker of the run that begins before a time, and before the rest of it."""
        return self.head + _UINT64 + max(0, time_ms).to_bytes(8, "big")

    def has(self, value: bytes) -> bool:
        """Whether it is a marker of the run."""
        return value.startswith(self.head)


def run_of(value: bytes) -> MarkerRun:
    """The run of a published marker. What is none is a run by itself: whoever decodes it says what is wrong."""
    try:
        marker = decode_marker(value)
    except FormatError:
        return MarkerRun(value, value + b"\0")
    head = value[: value.rindex(_UINT64 + marker.start_ms.to_bytes(8, "big") + _UINT64)]
    return MarkerRun(head, head + bytes([_UINT64[0] + 1]))
