"""The union of several keys' releases over one span: each key has a cover of its own, and all are one set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.asked_keys import AskedKey
from sfm_stream.answers.cover import Candidate, gaps, length_ms
from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.key_cover import KeyCover, releases_in_order
from sfm_stream.answers.release_sum import ReleaseSum, sum_bytes
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.errors import QuestionError
from sfm_stream.estimation.estimate import lower_bound
from sfm_stream.types import Window
from sfm_stream.wire.keys import decode_key

MAX_RELEASES = 10_000
"""Of one union. An estimate of 8,000 takes some 5 s of a core."""


@dataclass(slots=True)
class JoinedUnion:
    """Releases of several keys, in canonical bytes, over one span.

    covers: of each key that has a candidate, in their order, as far as begin() and take() were given them. released:
    how many releases these are made of.
    """

    span: Window
    asked: tuple[AskedKey, ...] | None
    covers: dict[bytes, KeyCover] = field(default_factory=dict)
    released: int = 0
    sum: ReleaseSum = field(default_factory=ReleaseSum)

    def begin(self, key: bytes) -> None:
        """What is taken next is of this key."""
        self.covers[key] = KeyCover(self.span)

    def take(self, part: Sequence[Candidate]) -> None:
        """Take the next part of the cover of the key that was begun last, in order of time.

        Raises QuestionError where that makes more than MAX_RELEASES of all keys.
        """
        next(reversed(self.covers.values())).take(part)
        self.released += len(part)
        if self.released > MAX_RELEASES:
            raise QuestionError(
                f"{len(self.covers)} keys or more have over {MAX_RELEASES:,} releases in one span, more than one "
                "answer is made of: ask for fewer keys, or a shorter span"
            )

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that it will take, about, once all that was taken is included."""
        covers = self.covers.values()
        shape = next((cover.shape for cover in covers if cover.shape), None)
        of_keys = sum(map(len, self.covers)) + sum(cover.held_bytes for cover in covers)
        return of_keys + sum_bytes(shape, self.released)

    def row(self, grain: str, decided: DecidedSpans, terms: ReleaseTerms) -> AnswerRow:
        """The row of an answer, once nothing is waiting.

        windows, missing and complete are those of all keys that are asked for: missing is where any of them may hold
        something that is not in the row. Where all keys are asked for and some may be withheld, that is everywhere.
        """
        covers = [cover for cover in self.covers.values() if cover.taken]
        absent = [KeyCover(self.span)] * self._absent_keys
        missing = self._missing([*covers, *absent], decided, terms)
        taken: dict[str, tuple[int, int]] = {}
        for name, (longest_ms, count) in (item for cover in covers for item in cover.taken.items()):
            known_ms, known = taken.get(name, (0, 0))
            taken[name] = max(known_ms, longest_ms), known + count
        epochs = {epoch for cover in covers for epoch in cover.partitions_of}
        is_raw = self.released == 1 and covers[0].is_one_release
        of_releases = self.sum.estimate()
        return AnswerRow(
            key=(),
            grain=grain,
            window=self.span,
            estimate=lower_bound(of_releases) if missing else of_releases,
            epsilon=self.sum.epsilon(terms),
            origin="raw" if is_raw else "merged",
            releases=releases_in_order(taken),
            windows=sum(cover.windows(decided) for cover in [*covers, *absent]),
            complete=self._is_complete(covers, bool(absent), decided),
            missing_ms=sum(length_ms(part) for part in missing),
            missing=missing,
            epoch=max(epochs),
            keys=tuple(decode_key(key) for key, cover in self.covers.items() if cover.taken),
        )

    @property
    def _absent_keys(self) -> int:
        """How many keys that are asked for have no release here."""
        found = {key for key, cover in self.covers.items() if cover.taken}
        return sum(not (key.encoded & found) for key in self.asked or ())

    def _missing(self, covers: Sequence[KeyCover], decided: DecidedSpans, terms: ReleaseTerms) -> tuple[Window, ...]:
        """The parts of the span in which a key may hold something that is not in the union."""
        missing = [part for cover in covers for part in cover.missing(decided, terms)]
        if self.asked is None:  # keys that nobody can name may be withheld: what holds of a key without any release
            missing += KeyCover(self.span).missing(decided, terms)
        return tuple(gaps(self.span, gaps(self.span, missing)))

    def _is_complete(self, covers: Sequence[KeyCover], some_absent: bool, decided: DecidedSpans) -> bool:
        if self.asked is None or some_absent:
            newest = decided.epochs[max(decided.epochs)]
            return decided.is_complete(range(newest.partitions), self.span)
        return all(
            cover.is_one_release or decided.is_complete(set().union(*cover.partitions_of.values()), self.span)
            for cover in covers
        )
