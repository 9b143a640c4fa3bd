"""Answers over unions of releases: for a whole span, or for each week or month in it.

Releases are looked up without their sketches first, sorted by row and key, and the coarsest that cover each row are
chosen. Then their sketches are read and added up, those of as many rows at a time as SUMS_BYTES hold: on a cluster each
reading goes over the topic once. What is held does not grow with the number of releases or rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from sfm_stream.answers.answer_rows import AnswerRows
from sfm_stream.answers.candidates import Candidates, RowKey
from sfm_stream.answers.cover import Candidate
from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.key_union import KeyUnion
from sfm_stream.answers.published_records import release_of
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.widest_cover import widest_cover
from sfm_stream.errors import StateError
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import Window
from sfm_stream.units import SKETCHES

SUMS_BYTES = 32 << 20
"""Of sums of sketches that are held at a time; of the next row where that takes more."""
PLACES = 1 << 19
"""Releases that are chosen and not read yet."""


def union_rows(
    grain: str, candidates: Candidates, reader: TopicReader, decided: DecidedSpans, terms: ReleaseTerms
) -> AnswerRows:
    """A row for each key, and each week or month where the question asks by these, in order of both.

    A row is the union of the coarsest releases inside it that are disjoint in time. Releases of one epsilon are
    tallied; where several epsilons meet, the tallies and the paper's merge bound their union. Raises IncompatibleError
    where epochs differ in shape or hash, StateError where a release is gone that was looked up.
    """
    rows, together = AnswerRows(), _Together(reader)
    for row in candidates.rows():
        if together.is_full or together.span != row[0]:
            together.finish(rows, grain, decided, terms)
        together.add(row, widest_cover(terms.pipeline, partial(candidates.of, row)))
    together.finish(rows, grain, decided, terms)
    return rows


class _Together:
    """Rows of one span whose sketches are read together."""

    def __init__(self, reader: TopicReader) -> None:
        self._reader = reader
        self.span: Window | None = None
        self._unions: list[tuple[bytes, KeyUnion]] = []
        self._sums_bytes = 0
        self._places = array("q")
        """Of each release that is not read yet: partition, offset, and the number of its union."""

    @property
    def is_full(self) -> bool:
        return self._sums_bytes > SUMS_BYTES

    def add(self, row: RowKey, cover: Iterable[Sequence[Candidate]]) -> None:
        """Add a row with the parts of its cover."""
        self.span, key = row
        union = KeyUnion(self.span)
        self._unions.append((key, union))
        for part in cover:
            union.take(part)
            for each in part:
                self._places.extend((*each.place, len(self._unions) - 1))
            if len(self._places) >= 3 * PLACES:
                self._read()
        self._sums_bytes += union.sums_bytes

    def finish(self, rows: AnswerRows, grain: str, decided: DecidedSpans, terms: ReleaseTerms) -> None:
        """Make the rows, and hold none any more."""
        self._read()
        for key, union in self._unions:
            rows.add(union.row(grain, key, decided, terms))
        self._unions, self._sums_bytes = [], 0

    def _read(self) -> None:
        """Include what was chosen, in order of the topic."""
        if not self._places:
            return
        places = np.frombuffer(self._places, np.int64).reshape(-1, 3)
        places, self._places = places[np.lexsort((places[:, 1], places[:, 0]))], array("q")
        partitions, begins = np.unique(places[:, 0], return_index=True)
        for partition, of_partition in zip(partitions.tolist(), np.split(places, begins[1:]), strict=True):
            offsets = array("q", of_partition[:, 1].tobytes())
            records = self._reader.at(SKETCHES, partition, offsets)
            for offset, number in zip(offsets, of_partition[:, 2].tolist(), strict=True):
                stored = next(records, None)
                if stored is None or stored.offset != offset:
                    raise StateError("releases went out of the sketch topic while it was read for an answer: ask again")
                self._unions[number][1].include(release_of(stored))
