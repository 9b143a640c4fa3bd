"""Published sketches as rows of a table for other engines, each with the bytes that Presto reads.

Only what is published goes in: the rows are made of releases and roll-ups, and the bytes by `presto.encode`, which
takes private sketches alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from sfm_stream.answers.asked import LeftOut, newest_rollups, releases
from sfm_stream.answers.key_notation import finite, key_json
from sfm_stream.answers.table_file import Kind, TableRow
from sfm_stream.estimation.estimate import Estimate, Status, estimate
from sfm_stream.pipeline.rollup.coverage import Absence, rollup_estimate
from sfm_stream.privacy.epsilon import epsilon_of
from sfm_stream.sketch.hashing import XXH64
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import Window
from sfm_stream.units import ROLLUPS
from sfm_stream.wire import presto
from sfm_stream.wire.codec import Release, RollupRecord
from sfm_stream.wire.keys import decode_key

COLUMNS: dict[str, Kind] = {
    "pipeline": "text",
    "epoch": "int32",
    "key": "text",
    "grain": "text",
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
}
"""Of both topics, in this order; docs/presto.md says what each holds. No name is a reserved word of SQL."""


@dataclass(slots=True)
class Exported:
    """What went into a table.

    without_sketch: rows of pure noise. lower_bounds: roll-ups with windows that nobody knows to be empty. hashes: names
    of the item hashes of all rows. keys: canonical ones in it.
    """

    rows: int = 0
    without_sketch: int = 0
    lower_bounds: int = 0
    hashes: set[str] = field(default_factory=set)
    keys: set[bytes] = field(default_factory=set)
    left_out: LeftOut = field(default_factory=LeftOut)

    @property
    def foreign_hashes(self) -> list[str]:
        """Hashes under which Presto makes no sketches: merged with its own ones they give a wrong count."""
        return sorted(self.hashes - {XXH64.name})


def exported_rows(
    reader: TopicReader,
    topic: str,
    pipeline: str,
    span: Window | None,
    keys: set[bytes] | None,
    report: Exported,
    absence: Absence,
    epsilon_selection: float = 0.0,
) -> Iterator[TableRow]:
    """A row for each release, or for the newest revision of each roll-up, inside the span; the report grows with them.

    topic: SKETCHES or ROLLUPS. epsilon_selection: as in query.Row. In order of the topic, one at a time.
    """
    records: Iterator[Release | RollupRecord] = (
        newest_rollups(reader, pipeline, span, keys, report.left_out)
        if topic == ROLLUPS
        else releases(reader, pipeline, span, keys, report.left_out)
    )
    for record in records:
        row = _release_row(record) if isinstance(record, Release) else _rollup_row(record, absence)
        row["epsilon"] = _epsilon(record, epsilon_selection)
        report.rows += 1
        report.lower_bounds += row["status"] == Status.LOWER_BOUND
        report.keys.add(record.key)
        report.without_sketch += row["sketch"] is None
        report.hashes.add(str(row["hash"]))
        yield row


def _epsilon(record: Release | RollupRecord, epsilon_selection: float) -> float:
    """The most that an item under the key can lose over the releases in a record."""
    if isinstance(record, Release):
        return epsilon_of(record.sketch.flip_threshold) + epsilon_selection
    return record.released * (epsilon_of(record.tally.flip_threshold) + epsilon_selection)


def _release_row(release: Release) -> TableRow:
    return {
        **_common(release, release.sketch),
        "grain": "window",
        "zone": None,
        "released": 1,
        "decided": 1,
        "windows": 1,
        "complete": True,
        "revision": None,
        **_figures(estimate(release.sketch)),
        "release_id": release.release_id.hex(),
    }


def _rollup_row(record: RollupRecord, absence: Absence) -> TableRow:
    return {
        **_common(record, record.merged),
        "grain": record.grain,
        "zone": record.zone,
        "released": record.released,
        "decided": record.decided,
        "windows": record.windows,
        "complete": record.complete,
        "revision": record.revision,
        **_figures(rollup_estimate(record, absence)),
        "release_id": None,
    }


def _figures(found: Estimate) -> TableRow:
    return {"estimate": found.value, "low": found.low, "high": finite(found.high), "status": str(found.status)}


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
