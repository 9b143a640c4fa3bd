"""Answers over unions of releases: for a whole span, or for each week or month in it.

The topic is read twice. The first reading holds of each release its window and a digest, and says which of them cover
what is asked; the second adds up the sketches of those, and a row is made and its sums are let go as soon as the last
release of its cover is in. So a question by week holds the sums of the weeks that a topic in order of time has open,
however many weeks it asks for.
"""

from __future__ import annotations

from collections.abc import Iterable

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.union_plan import UnionPlan
from sfm_stream.errors import StateError
from sfm_stream.types import Window
from sfm_stream.wire.codec import Release


def union_rows(
    plan: UnionPlan, releases: Iterable[Release], decided: DecidedSpans, terms: ReleaseTerms
) -> list[AnswerRow]:
    """A row for each key, and each week or month where the question asks by these, in order of both.

    plan, decided: from the first reading. releases: those of the second, copies too. A row is the union of the coarsest
    releases inside it that are disjoint in time. Releases of one epsilon are tallied; where several epsilons meet, the
    tallies and the paper's merge bound their union. Raises StateError where a planned release is missing.
    """
    rows: list[tuple[Window, bytes, AnswerRow]] = []
    for release in releases:
        if union := plan.whole_with(release):
            rows.append((union.span, release.key, union.row(plan.grain, release.key, decided, terms)))
    if plan.unions:
        raise StateError("releases went out of the sketch topic while it was read for an answer: ask again")
    return [row for _, _, row in sorted(rows, key=lambda each: each[:2])]
