"""Answers by window: a row for each release."""

from __future__ import annotations

from collections.abc import Iterable

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.answer_rows import AnswerRows
from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.span_name import span_name
from sfm_stream.estimation.estimate import estimate
from sfm_stream.wire.codec import Release
from sfm_stream.wire.keys import decode_key


def window_rows(releases: Iterable[Release], decided: DecidedSpans, terms: ReleaseTerms) -> AnswerRows:
    """A row for each release of a base window, in order of window, key, epoch and partition.

    decided: says which windows are base windows: once all releases were read, and for an epoch with markers before.
    """
    rows = AnswerRows()
    for release in releases:
        sketch, count = release.sketch, release.sketch.count
        row = AnswerRow(
            key=decode_key(release.key),
            grain="window",
            window=release.window,
            estimate=estimate(sketch),
            epsilon=terms.epsilon_of_release(sketch.flip_threshold, None if count is None else count.epsilon),
            origin="raw",
            releases={span_name(release): 1},
            windows=1,
            complete=True,
            missing_ms=0,
            missing=(),
            epoch=release.epoch,
        )
        if not decided.is_marked(row.epoch) or decided.epochs[row.epoch].base in row.releases:
            rows.add(row, release.partition)
    if all(map(decided.is_marked, decided.epochs)):
        return rows
    of_base = AnswerRows()
    for row, partition in rows.with_partitions():
        if decided.epochs[row.epoch].base in row.releases:
            of_base.add(row, partition)
    return of_base
