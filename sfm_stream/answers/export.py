"""Published sketches as rows of a table for other engines, each with the bytes that Presto reads.

Rows are made of published releases and roll-ups only. The bytes are made by `presto.encode`, which takes private
sketches alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from sfm_stream.answers.asked_releases import asked_releases
from sfm_stream.answers.asked_rollups import newest_rollups
from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.key_notation import finite, key_json
from sfm_stream.answers.omitted_records import OmittedRecords
from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.rollup_sketches import with_sketches
from sfm_stream.answers.span_name import span_name
from sfm_stream.answers.table_file import ColumnType, TableRow
from sfm_stream.answers.unanswered import unanswered
from sfm_stream.errors import StateError
from sfm_stream.estimation.estimate import Estimate, Status, estimate
from sfm_stream.pipeline.rollup.coverage import rollup_estimate
from sfm_stream.readable import instant
from sfm_stream.sketch.hashing import XXH64
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.transport.contract import TopicReader
from sfm_stream.units import ROLLUPS
from sfm_stream.wire import presto
from sfm_stream.wire.codec import Release, RollupRecord
from sfm_stream.wire.keys import decode_key

COLUMNS: dict[str, ColumnType] = {
    "pipeline": "text",
    "epoch": "int32",
    "key": "text",
    "grain": "text",
    "span": "text",
    "origin": "text",
    "window_start": "time",
    "window_end": "time",
    "zone": "text",
    "source_partition": "int32",
    "source_partitions": "int32",
    "released": "int32",
    "decided": "int32",
    "windows": "int32",
    "complete": "bool",
    "revision": "int64",
    "unit": "text",
    "epsilon": "float64",
    "noisy_count": "int64",
    "epsilon_count": "float64",
    "flip_probability": "float64",
    "hash": "text",
    "buckets": "int32",
    "levels": "int32",
    "estimate": "float64",
    "low": "float64",
    "high": "float64",
    "status": "text",
    "release_id": "text",
    "sketch": "bytes",
    "standard_error": "float64",
    "confidence": "float64",
}
"""The columns for both topics, in this order; docs/presto.md describes each. No name is a reserved word of SQL.

Engines may know a column by its place, so a new one goes to the end.
"""


@dataclass(slots=True)
class ExportReport:
    """What went into a table.

    without_sketch: rows of pure noise. lower_bounds: roll-ups with windows that may hold something and have no release.
    hashes: names of the item hashes of all rows. keys: canonical bytes of the keys in it. unanswered: a line for each
    key that was asked for and is not in it.
    """

    rows: int = 0
    without_sketch: int = 0
    lower_bounds: int = 0
    hashes: set[str] = field(default_factory=set)
    keys: set[bytes] = field(default_factory=set)
    omitted: OmittedRecords = field(default_factory=OmittedRecords)
    unanswered: list[str] = field(default_factory=list)

    @property
    def foreign_hashes(self) -> list[str]:
        """Hashes under which Presto makes no sketches: merged with its own ones they give a wrong count."""
        return sorted(self.hashes - {XXH64.name})


def exported_rows(
    reader: TopicReader, terms: ReleaseTerms, question: Question, report: ExportReport
) -> Iterator[TableRow]:
    """A row for each release, or for the newest revision of each roll-up, that is asked for; the report counts them.

    In order of the topic, one at a time. Behind the last row it raises NothingFound if there was none, so that whoever
    writes the rows into a file gives no name to a table without rows.
    """
    records: Iterator[Release | RollupRecord] = (
        with_sketches(reader, newest_rollups(reader, terms.pipeline, question, report.omitted))
        if question.topic == ROLLUPS
        else asked_releases(reader, terms.pipeline, question, DecidedSpans(question.zone), report.omitted)
    )
    for record in records:
        row = _release_row(record, terms) if isinstance(record, Release) else _rollup_row(record, terms)
        report.rows += 1
        report.lower_bounds += row["status"] == Status.LOWER_BOUND
        if question.keys or not report.keys:  # of all keys one will do, and there may be millions
            report.keys.add(record.key)
        report.without_sketch += row["sketch"] is None
        report.hashes.add(str(row["hash"]))
        yield row
    report.unanswered = unanswered(reader, terms.pipeline, question, report.keys)


def _release_row(release: Release, terms: ReleaseTerms) -> TableRow:
    sketch, count = release.sketch, release.sketch.count
    count_epsilon = None if count is None else count.epsilon
    return {
        **_common(release, sketch),
        "grain": "window",
        "span": span_name(release),
        "origin": "raw",
        "zone": None,
        "released": 1,
        "decided": 1,
        "windows": 1,
        "complete": True,
        "revision": None,
        "epsilon": terms.epsilon_of_release(sketch.flip_threshold, count_epsilon),
        "noisy_count": None if count is None else count.value,
        "epsilon_count": None if count_epsilon is None else float(count_epsilon),
        **_figures(estimate(sketch)),
        "release_id": release.release_id.hex(),
    }


def _rollup_row(record: RollupRecord, terms: ReleaseTerms) -> TableRow:
    if record.tally is None or record.merged is None:
        raise StateError(
            f"the releases of a roll-up that begins at {instant(record.window.start_ms)} are not in the sketch topic, "
            "and its sketch is made of them: ask for a later span"
        )
    sizes = record.tally.sizes
    count = sizes.counts[0] if sizes is not None and record.origin == "raw" else None
    return {
        **_common(record, record.merged),
        "grain": record.grain,
        "span": span_name(record),
        "origin": record.origin or "merged",
        "zone": record.zone,
        "released": record.released,
        "decided": record.decided,
        "windows": record.windows,
        "complete": record.complete,
        "revision": record.revision,
        "epsilon": record.released * terms.epsilon_of_release(record.tally.flip_threshold, record.count_epsilon),
        "noisy_count": None if count is None else count.value,
        "epsilon_count": None if record.count_epsilon is None else float(record.count_epsilon),
        **_figures(rollup_estimate(record, terms.absence)),
        "release_id": None,
    }


def _figures(answer: Estimate) -> TableRow:
    return {
        "estimate": answer.value,
        "standard_error": finite(answer.standard_error),
        "low": answer.low,
        "high": finite(answer.high),
        "confidence": answer.confidence,
        "status": str(answer.status),
    }


def _common(record: Release | RollupRecord, sketch: SfmSketch) -> TableRow:
    is_noise = sketch.flip_threshold == GRID // 2  # p = 0.5, for which Presto's format has no place
    return {
        "pipeline": record.pipeline,
        "epoch": record.epoch,
        "key": json.dumps(key_json(decode_key(record.key)), ensure_ascii=False),
        "window_start": record.window.start_ms,
        "window_end": record.window.end_ms,
        "source_partition": record.partition,
        "source_partitions": record.partitions,
        "unit": record.unit,
        "flip_probability": presto.probability(sketch.flip_threshold),
        "hash": sketch.hash,
        "buckets": sketch.shape.buckets,
        "levels": sketch.shape.levels,
        "sketch": None if is_noise else presto.encode(sketch),
    }
