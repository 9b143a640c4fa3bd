"""The union of a key's releases over one span: those of its cover, and what of the span is not in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.cover import Candidate, length_ms
from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.key_cover import KeyCover
from sfm_stream.answers.release_sum import ReleaseSum, sum_bytes
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.estimation.estimate import lower_bound
from sfm_stream.wire.keys import decode_key


@dataclass(slots=True)
class KeyUnion:
    """Releases of one key, in canonical bytes, that cover a span: which they are, and their sum."""

    key: bytes
    cover: KeyCover
    sum: ReleaseSum = field(default_factory=ReleaseSum)

    def take(self, part: Sequence[Candidate]) -> None:
        """Take the next part of the cover, in order of time."""
        self.cover.take(part)

    @property
    def released(self) -> int:
        """How many releases it is made of."""
        return self.cover.released

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that it will take, about, once all that was taken is included."""
        return len(self.key) + self.cover.held_bytes + sum_bytes(self.cover.shape, self.released)

    def row(self, grain: str, decided: DecidedSpans, terms: ReleaseTerms) -> AnswerRow:
        """The row of an answer, once nothing is waiting."""
        cover, of_releases = self.cover, self.sum.estimate()
        missing = cover.missing(decided, terms)
        partitions = set().union(*cover.partitions_of.values())
        return AnswerRow(
            key=decode_key(self.key),
            grain=grain,
            window=cover.span,
            estimate=lower_bound(of_releases) if missing else of_releases,
            epsilon=self.sum.epsilon(terms),
            origin="raw" if cover.is_one_release else "merged",
            releases=cover.releases,
            windows=cover.windows(decided),
            complete=cover.is_one_release or decided.is_complete(partitions, cover.span),
            missing_ms=sum(length_ms(part) for part in missing),
            missing=missing,
            epoch=max(cover.partitions_of),
        )
