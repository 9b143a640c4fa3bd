"""Answers by window: a row for each release."""

from __future__ import annotations

from collections.abc import Iterable

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.span_name import span_name
from sfm_stream.estimation.estimate import estimate
from sfm_stream.types import Window
from sfm_stream.wire.codec import Release
from sfm_stream.wire.keys import decode_key


def window_rows(releases: Iterable[Release], decided: DecidedSpans, terms: ReleaseTerms) -> list[AnswerRow]:
    """A row for each release of a base window, in order of window, key, epoch and partition.

    decided: says which windows are base windows, once all releases were read.
    """
    found: list[tuple[Window, bytes, int, int, AnswerRow]] = []
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
        found.append((release.window, release.key, release.epoch, release.partition, row))
    in_order = (row for *_, row in sorted(found, key=lambda each: each[:4]))
    return [row for row in in_order if decided.epochs[row.epoch].base in row.releases]
