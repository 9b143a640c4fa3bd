"""The releases of one key that cover a span, and what of the span is not in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sfm_stream.answers.cover import Candidate, gaps, length_ms, windows_to_fill
from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import Window

_COVER_BYTES, _GAP_BYTES = 1200, 150


@dataclass(slots=True)
class KeyCover:
    """Of the cover of a span, as far as take() was given it.

    taken: the name of each released span -> length of its longest release and number of releases. partitions_of:
    epoch -> partitions. between: gaps up to reached_ms.
    """

    span: Window
    taken: dict[str, tuple[int, int]] = field(default_factory=dict)
    partitions_of: dict[int, set[int]] = field(default_factory=dict)
    is_one_release: bool = False
    """Whether the cover is a single release of the whole span."""
    between: list[Window] = field(default_factory=list)
    reached_ms: int = 0
    shape: SketchShape | None = None
    """Of its sketches, once there is one."""

    def take(self, cover: Sequence[Candidate]) -> None:
        """Take the next part of the cover, in order of time."""
        for each in cover:
            self.is_one_release = not self.taken and each.window == self.span
            longest, count = self.taken.get(each.span, (0, 0))
            self.taken[each.span] = max(longest, length_ms(each.window)), count + 1
            self.partitions_of.setdefault(each.epoch, set()).add(each.partition)
            self.shape = each.shape
            if (before := max(self.reached_ms, self.span.start_ms)) < each.window.start_ms:
                self.between.append(Window(before, each.window.start_ms))
            self.reached_ms = max(self.reached_ms, each.window.end_ms)

    @property
    def released(self) -> int:
        """How many releases it is made of."""
        return sum(count for _, count in self.taken.values())

    @property
    def releases(self) -> dict[str, int]:
        """The name of each released span -> how many of its releases are in the cover; the coarsest first."""
        return releases_in_order(self.taken)

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that it takes, about."""
        return _COVER_BYTES + _GAP_BYTES * len(self.between)

    @property
    def gaps(self) -> list[Window]:
        """The parts of the span that are in no release of the cover."""
        rest = Window(max(self.reached_ms, self.span.start_ms), self.span.end_ms)
        return [*self.between, *([rest] if rest.start_ms < rest.end_ms else [])]

    def windows(self, decided: DecidedSpans) -> int:
        """How many releases a cover of the whole span takes: those in it, and those that would fill the gaps."""
        parts = (part for gap in self.gaps for part in decided.grids_over(gap))
        return self.released + sum(windows_to_fill(part, grids) for part, grids in parts)

    def missing(self, decided: DecidedSpans, terms: ReleaseTerms) -> tuple[Window, ...]:
        """The parts of the span that may hold something and are not in the cover."""
        number, known = terms.absence.empty_in, list[Window]()
        if number is not None and (epoch := decided.epochs.get(number)):
            where = self.partitions_of.get(number, ())
            known = [epoch.base_decided(partition) for partition in where] or [epoch.base_decided(None)]
        return tuple(part for gap in self.gaps for part in gaps(gap, known))


def releases_in_order(taken: dict[str, tuple[int, int]]) -> dict[str, int]:
    """The name of each released span -> number of releases, the longest span first. taken: as in KeyCover."""
    in_order = sorted(taken, key=lambda name: taken[name][0], reverse=True)
    return {name: taken[name][1] for name in in_order}
