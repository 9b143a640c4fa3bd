"""Answers over unions of releases: for a whole span, or for each week or month in it; of each key, or of all together.

Releases are looked up without their sketches first, sorted by row and key, and the coarsest that cover each row are
chosen. Then their sketches are read and added up, those of as many rows at a time as HELD_BYTES hold. What is held does
not grow with the number of releases or rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import TypeAlias

from sfm_stream.answers.answer_rows import AnswerRows
from sfm_stream.answers.candidates import Candidates, RowKey
from sfm_stream.answers.cover import Candidate
from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.joined_union import JoinedUnion
from sfm_stream.answers.key_cover import KeyCover
from sfm_stream.answers.key_union import KeyUnion
from sfm_stream.answers.looked import looked
from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.sketch_reading import SketchReading
from sfm_stream.answers.widest_cover import widest_cover, widest_covers
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import Window

Cover: TypeAlias = Iterator[Sequence[Candidate]]
"""The releases that answer for a span, part by part."""


def union_rows(
    question: Question, candidates: Candidates, reader: TopicReader, decided: DecidedSpans, terms: ReleaseTerms
) -> AnswerRows:
    """A row for each key, or for all keys together, in each span that the question asks by; in order of span and key.

    A row is the union of the coarsest releases inside it that are disjoint in time, of each key. Releases of one
    epsilon are tallied; where several epsilons meet, the tallies and the paper's merge bound their union. Raises
    IncompatibleError where epochs differ in shape or hash, StateError where a release is gone that was looked up.
    """
    rows, reading = AnswerRows(), SketchReading(reader)

    def finish() -> None:
        # What an estimate needs beside the sums follows from the number of releases, and takes longest to make.
        for union in looked(reader, sorted(reading.finish(), key=attrgetter("released"))):
            rows.add(union.row(str(question.grain), decided, terms))

    for span, of_span in groupby(candidates.rows(), key=itemgetter(0)):
        if question.joined:
            keys = [key for _, key in of_span]
            if not is_window_of_base(question, candidates, decided, span, keys):
                continue
            reading.add(*joined_union(question, candidates, terms, span, keys))
        else:
            finish()
            for row in of_span:
                if reading.is_full:
                    finish()
                reading.add(*key_union(candidates, terms, row))
        if reading.is_full:
            finish()
    finish()
    return rows


def key_union(candidates: Candidates, terms: ReleaseTerms, row: RowKey) -> tuple[KeyUnion, Cover]:
    """The union of one key in one span, and the cover that it has to take."""
    span, key = row
    return KeyUnion(key, KeyCover(span)), widest_cover(terms.pipeline, partial(candidates.of, row))


def joined_union(
    question: Question, candidates: Candidates, terms: ReleaseTerms, span: Window, keys: Sequence[bytes]
) -> tuple[JoinedUnion, Cover]:
    """The union of several keys in one span, and the cover that it has to take. keys: that have candidates there."""
    union = JoinedUnion(span, question.keys)

    def parts() -> Cover:
        covers = widest_covers(terms.pipeline, lambda: (partial(candidates.of, (span, key)) for key in keys))
        for key, cover in zip(keys, covers, strict=True):
            union.begin(key)
            yield from cover

    return union, parts()


def is_window_of_base(
    question: Question, candidates: Candidates, decided: DecidedSpans, span: Window, keys: Sequence[bytes]
) -> bool:
    """Whether a span is one that the question asks by: of windows those of the finest released span of their epoch."""
    if question.grain != "window":
        return True
    found = (each for key in keys for each in candidates.of((span, key)))
    return any(each.span == decided.epochs[each.epoch].base for each in found)
