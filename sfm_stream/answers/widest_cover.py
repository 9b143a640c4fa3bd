"""Of which releases the union of a row is made, of one key or several, where they may differ in shape and hash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from sfm_stream.answers.cover import Candidate, cover, gaps, length_ms, parts
from sfm_stream.errors import IncompatibleError
from sfm_stream.sketch.shape import SketchShape

Alike: TypeAlias = tuple[SketchShape, str]
"""Shape and hash: only sketches that share both can be joined."""
Candidates: TypeAlias = Callable[[], Iterable[Candidate]]
"""Those of one key, in order of time, each time it is called."""


@dataclass(slots=True)
class _Width:
    """What the cover by releases of one shape and hash takes in. epochs: in order of time."""

    length_ms: int = 0
    releases: int = 0
    epochs: list[int] = field(default_factory=list)

    def take(self, chosen: tuple[Candidate, ...]) -> None:
        self.length_ms += sum(length_ms(each.window) for each in chosen)
        self.releases += len(chosen)
        self.epochs += dict.fromkeys(each.epoch for each in chosen if each.epoch not in self.epochs)


def widest_cover(pipeline: str, candidates: Candidates) -> Iterator[tuple[Candidate, ...]]:
    """As widest_covers, of one key."""
    for cover_of_key in widest_covers(pipeline, lambda: [candidates]):
        yield from cover_of_key


def widest_covers(pipeline: str, keys: Callable[[], Iterable[Candidates]]) -> Iterator[Iterator[tuple[Candidate, ...]]]:
    """The covers of several keys by releases of one shape and hash that take in most time.

    One for each key, in their order, part by part in order of time; each is gone through before the next one.

    Of several shapes it is the one with fewest releases, and of these that of the first release. keys: gives the
    candidates of each key in order of time, each time it is called. Raises IncompatibleError where epochs differ in
    shape or hash: spans of one epoch may, and then one shape is answered; of another epoch nothing may be left out.
    """
    widths: dict[Alike, _Width] = {}
    for candidates in keys():
        for part in parts(candidates()):
            for kind, of_kind in _by_kind(part).items():
                widths.setdefault(kind, _Width()).take(cover(of_kind))
    widest = max(widths, key=lambda kind: (widths[kind].length_ms, -widths[kind].releases))
    for candidates in keys():
        yield _of_kind(pipeline, candidates, widest, widths[widest].epochs)


def _of_kind(pipeline: str, candidates: Candidates, kind: Alike, epochs: list[int]) -> Iterator[tuple[Candidate, ...]]:
    for part in parts(candidates()):
        by_kind = _by_kind(part)
        chosen = cover(by_kind.pop(kind, ()))
        for others in by_kind.values():
            _require_mergeable(pipeline, chosen, others, epochs)
        yield chosen


def _by_kind(candidates: Iterable[Candidate]) -> dict[Alike, list[Candidate]]:
    by_kind: dict[Alike, list[Candidate]] = {}
    for candidate in candidates:
        by_kind.setdefault((candidate.shape, candidate.hash), []).append(candidate)
    return by_kind


def _require_mergeable(
    pipeline: str, chosen: tuple[Candidate, ...], others: Iterable[Candidate], epochs: list[int]
) -> None:
    """others: of another kind. epochs: those of the whole cover."""
    for other in others:
        if other.epoch not in epochs and gaps(other.window, (each.window for each in chosen)):
            first, second = sorted((epochs[0], other.epoch))
            raise IncompatibleError(
                f"epochs {first} and {second} of pipeline {pipeline} have sketches of different shape or "
                "hash: ask for one of them with --from and --to"
            )
