"""Tables that `sfm-stream export` wrote: made, read back, and held against the records that they were made of."""

from __future__ import annotations

import base64
import csv
import io
import json
import subprocess
from collections.abc import Callable, Sequence
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
from reference import presto_reader as oracle
from support.embedded_runs import MINUTE_MS, START_MS, here, run_here, write_config, write_events
from support.memory_topics import stored

from sfm_stream.estimation.estimate import estimate
from sfm_stream.readable import duration
from sfm_stream.sketch.sfm import GRID
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Record, Step
from sfm_stream.wire.codec import Release, RollupRecord
from sfm_stream.wire.keys import encode_key

Row = dict[str, Any]
"""Of an exported table: column to value, None for no value."""
NUMBERS: dict[str, Callable[[str], float]] = dict.fromkeys(
    [
        "epoch",
        "source_partition",
        "source_partitions",
        "released",
        "decided",
        "windows",
        "revision",
        "noisy_count",
        "buckets",
        "levels",
    ],
    int,
) | dict.fromkeys(
    ["epsilon", "epsilon_count", "flip_probability", "estimate", "low", "high", "standard_error", "confidence"], float
)


def make_pipeline(folder: Path) -> Path:
    """A configuration that has run: 24 releases of three keys in eight windows, six hours, three days."""
    write_events(
        folder / "in.jsonl",
        ({"page": f"p{n % 3}", "user": f"u{n}", "at": START_MS + n * MINUTE_MS} for n in range(120)),
    )
    run_here(write_config(folder))
    return folder


def publish(app: Path, topic: str, *payloads: bytes) -> None:
    """Put records behind those that are there, under the keys and stamps that workers give them."""
    records = [Record(topic, 0, each.key, each.value, each.timestamp_ms) for each in stored(payloads)]
    log = SqliteLog(str(app.parent / "out.sqlite"))
    log.append("test", Step(tuple(records), ()))
    log.close()


def export(
    app: Path, *options: str, out: str = "out.parquet", code: int = 0
) -> tuple[list[Row], subprocess.CompletedProcess[str]]:
    """Run the command into a file; its rows, read back, and what it said."""
    done = here("export", app, "--format", "presto", "--out", app.parent / out, *options)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    return read(app.parent / out), done


def read(path: Path) -> list[Row]:
    """Rows of either kind of file in one form: times in ms, sketches as bytes, None for no value."""
    if path.suffix == ".parquet":
        rows: list[Row] = parquet.read_table(path).to_pylist()
        for row in rows:
            row |= {name: round(row[name].timestamp() * 1000) for name in ("window_start", "window_end")}
        return rows
    return csv_rows(path.read_bytes())


def csv_rows(content: bytes) -> list[Row]:
    rows = []
    for text in csv.DictReader(io.StringIO(content.decode(), newline="")):
        row: Row = {name: value if value != "" else None for name, value in text.items()}
        for name, value in text.items():
            if value and name in NUMBERS:
                row[name] = NUMBERS[name](value)
            elif name in ("window_start", "window_end"):
                assert value.endswith("Z")
                row[name] = round(datetime.fromisoformat(value).timestamp() * 1000)
        row["complete"] = {"true": True, "false": False}[text["complete"]]
        row["sketch"] = base64.b64decode(text["sketch"], validate=True) if text["sketch"] else None
        rows.append(row)
    return rows


def figures(record: Release | RollupRecord) -> Row:
    """Of a release its estimate; of a roll-up what is published, a lower bound where windows were not decided."""
    if isinstance(record, Release):
        found = estimate(record.sketch)
        return {
            "estimate": found.value,
            "standard_error": found.standard_error,
            "low": found.low,
            "high": found.high,
            "confidence": found.confidence,
            "status": str(found.status),
        }
    whole = record.decided == record.windows
    return {
        "estimate": record.value,
        "standard_error": record.standard_error if np.isfinite(record.standard_error) else None,
        "low": record.low,
        "confidence": record.confidence,
        "high": record.high if whole and np.isfinite(record.high) else None,
        "status": record.status if whole or np.isinf(record.high) else "lower_bound",
    }


def count_columns(record: Release | RollupRecord) -> tuple[int | None, float | None]:
    """noisy_count and epsilon_count."""
    if isinstance(record, Release):
        count = record.sketch.count
        return (count.value, float(count.epsilon)) if count else (None, None)
    sizes = record.tally.sizes if record.tally else None
    of_raw = sizes.counts[0] if record.origin == "raw" and sizes else None
    epsilon = None if record.count_epsilon is None else float(record.count_epsilon)
    return (None if of_raw is None else of_raw.value), epsilon


def check_row(row: Row, record: Any) -> None:
    """One row says what its record says, and its blob holds the same cells under the same noise."""
    is_release = isinstance(record, Release)
    sketch = record.sketch if is_release else record.merged
    epsilon = np.log((GRID - (k := (record.sketch if is_release else record.tally).flip_threshold)) / k)
    count, epsilon_count = count_columns(record)
    length_ms = (record.window.end_ms - record.window.start_ms) // (1 if is_release else record.windows)
    expected = {
        "pipeline": record.pipeline,
        "epoch": record.epoch,
        "grain": "window" if is_release else record.grain,
        "span": record.span or duration(length_ms),
        "origin": "raw" if is_release else record.origin or "merged",
        "window_start": record.window.start_ms,
        "window_end": record.window.end_ms,
        "zone": None if is_release else record.zone,
        "source_partition": record.partition,
        "source_partitions": record.partitions,
        "released": 1 if is_release else record.released,
        "decided": 1 if is_release else record.decided,
        "windows": 1 if is_release else record.windows,
        "complete": True if is_release else record.complete,
        "revision": None if is_release else record.revision,
        "unit": record.unit,
        "noisy_count": count,
        "epsilon_count": epsilon_count,
        "hash": sketch.hash,
        "buckets": sketch.shape.buckets,
        "levels": sketch.shape.levels,
        **figures(record),
        "release_id": record.release_id.hex() if is_release else None,
    }
    assert {name: row[name] for name in expected} == expected
    assert row.keys() == expected.keys() | {"key", "epsilon", "flip_probability", "sketch"}
    assert encode_key(tuple(json.loads(row["key"]))) == record.key
    assert row["epsilon"] == pytest.approx(expected["released"] * (epsilon + (epsilon_count or 0)), rel=1e-12)
    assert (
        0
        <= Fraction(sketch.flip_threshold, GRID) - Fraction(row["flip_probability"])
        < Fraction(sketch.flip_threshold, GRID) / 2**52
    )
    if sketch.flip_threshold == GRID // 2:
        assert row["sketch"] is None
        return
    blob = oracle.read(row["sketch"])
    assert blob.p == row["flip_probability"] > 0, "a raw sketch is secret"
    assert (2**blob.index_bits, blob.levels) == (sketch.shape.buckets, sketch.shape.levels)
    assert blob.bits == {i for i in range(8 * len(sketch.bits)) if sketch.bits[i // 8] >> i % 8 & 1}


def check_rows(rows: Sequence[Row], records: Sequence[Release | RollupRecord]) -> None:
    assert len(rows) == len(records)
    for row, record in zip(rows, records, strict=True):
        check_row(row, record)


def left(app: Path) -> list[str]:
    """Names of the files beside a configuration that are not its input, output or notes."""
    return sorted(
        path.name
        for path in app.parent.iterdir()
        if path.suffix not in (".sqlite", ".lock", ".released", ".jsonl", ".toml")
    )


def documents(done: subprocess.CompletedProcess[str]) -> list[Any]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
