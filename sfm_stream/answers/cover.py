"""Which releases answer for a span of time: disjoint in time, the coarsest first."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import Window
from sfm_stream.windows.grid import Grid


class Candidate(NamedTuple):
    """A release of one key, without its sketch. span: the name of its released span. shape, hash: of the sketch.

    place: partition and offset of its record.
    """

    window: Window
    epoch: int
    partition: int
    span: str
    shape: SketchShape
    hash: str
    place: tuple[int, int] = (0, 0)


def cover(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Candidates that are disjoint in time, in order of time: greedily the longest one that still fits.

    No further candidate fits beside them. Of one window in two epochs the newer epoch is taken; of one epoch in two
    partitions both are, because these counted different events.
    """
    taken: list[Candidate] = []
    for candidate in sorted(candidates, key=_coarsest_first):
        place = bisect_right(taken, candidate.window, key=lambda other: other.window)
        beside = taken[max(0, place - 1) : place + 1]
        if all(_go_together(candidate, other) for other in beside):
            taken.insert(place, candidate)
    return tuple(taken)


def parts(candidates: Iterable[Candidate]) -> Iterator[list[Candidate]]:
    """Candidates in order of time in parts, as short as can be: none overlaps one of another part.

    So the cover of all is that of each part, and nobody has to hold more of them than the longest release covers.
    """
    part: list[Candidate] = []
    reached_ms = 0
    for candidate in candidates:
        if part and candidate.window.start_ms >= reached_ms:
            yield part
            part = []
        part.append(candidate)
        reached_ms = max(reached_ms, candidate.window.end_ms)
    if part:
        yield part


def gaps(span: Window, windows: Iterable[Window]) -> list[Window]:
    """The parts of a span that lie in none of these windows, in order of time."""
    found, reached_ms = [], span.start_ms
    for window in sorted(windows):
        if reached_ms < min(window.start_ms, span.end_ms):
            found.append(Window(reached_ms, min(window.start_ms, span.end_ms)))
        reached_ms = max(reached_ms, window.end_ms)
    if reached_ms < span.end_ms:
        found.append(Window(reached_ms, span.end_ms))
    return found


def windows_to_fill(gap: Window, grids: Sequence[Grid]) -> int:
    """How many windows a cover takes for a gap in which every window has a release. grids: the coarsest first."""
    if not grids or gap.start_ms >= gap.end_ms:
        return 0
    coarsest, *finer = grids
    low_ms, high_ms = coarsest.ceil(gap.start_ms), coarsest.floor(gap.end_ms)
    if low_ms >= high_ms:
        return windows_to_fill(gap, finer)
    ends = Window(gap.start_ms, low_ms), Window(high_ms, gap.end_ms)
    return coarsest.count(low_ms, high_ms) + sum(windows_to_fill(end, finer) for end in ends)


def length_ms(window: Window) -> int:
    """Milliseconds from its start to its end."""
    return window.end_ms - window.start_ms


def _coarsest_first(candidate: Candidate) -> tuple[int, int, int, int]:
    return -length_ms(candidate.window), candidate.window.start_ms, -candidate.epoch, candidate.partition


def _go_together(one: Candidate, other: Candidate) -> bool:
    low, high = sorted((one.window, other.window))
    return low.end_ms <= high.start_ms or (one.window, one.epoch) == (other.window, other.epoch)
