"""Answers by quarter, hour and day: a row for each roll-up."""

from __future__ import annotations

from collections.abc import Iterable

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.answer_rows import AnswerRows
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.span_name import span_name
from sfm_stream.pipeline.rollup.coverage import rollup_estimate
from sfm_stream.wire.codec import RollupRecord
from sfm_stream.wire.keys import decode_key


def rollup_rows(rollups: Iterable[RollupRecord], terms: ReleaseTerms) -> AnswerRows:
    """A row for each roll-up, in order of window, key, epoch and partition."""
    rows = AnswerRows()
    for record in rollups:
        window_ms = (record.window.end_ms - record.window.start_ms) // record.windows
        accounted = terms.absence.accounted(record.epoch, record.released, record.decided)
        row = AnswerRow(
            key=decode_key(record.key),
            grain=record.grain,
            window=record.window,
            estimate=rollup_estimate(record, terms.absence),
            epsilon=record.released * terms.epsilon_of_release(record.of_releases.flip_threshold, record.count_epsilon),
            origin=record.origin or "merged",
            releases={span_name(record): record.released},
            windows=record.windows,
            complete=record.complete,
            missing_ms=(record.windows - accounted) * window_ms,
            missing=() if accounted >= record.windows else None,
            epoch=record.epoch,
        )
        rows.add(row, record.partition)
    return rows
