"""`sfm-stream inspect`: published records, decoded."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from sfm_stream.answers.asked import decoded
from sfm_stream.answers.key_notation import finite, key_json, key_text
from sfm_stream.cli.output import WIDE, console, echo_json
from sfm_stream.composition.published import published, published_file
from sfm_stream.config.config import load_config
from sfm_stream.privacy.epsilon import epsilon_of
from sfm_stream.readable import instant
from sfm_stream.transport.contract import TopicReader
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord, WireRecord, decode_at
from sfm_stream.wire.keys import decode_key

SQLITE_MAGIC = b"SQLite format 3\x00"


@click.command()
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--topic", type=click.Choice([SKETCHES, ROLLUPS]), default=SKETCHES, show_default=True)
@click.option("--pipeline", help="Only records of this pipeline.")
@click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="First offset.")
@click.option("--limit", type=click.IntRange(1), help="At most so many records.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document a record, bitmaps in base64.")
def inspect(source: Path, topic: str, pipeline: str | None, offset: int, limit: int | None, as_json: bool) -> None:
    """Decode the records of SOURCE.

    SOURCE: the output file of a pipeline; a configuration (.toml), for the topics of its pipeline; or a file with the
    bytes of one record.
    """
    table = Table("offset", "kind", "pipeline", "key", "from (UTC)", "to", "content", box=None, pad_edge=False)
    for shown, (at, record) in enumerate(_records(source, topic, pipeline, offset)):
        if limit is not None and shown >= limit:
            break
        if as_json:
            echo_json({"offset": at, **_as_json(record)})
        else:
            table.add_row(*(Text(cell) for cell in (str(at), *_cells(record))))
    if not as_json:
        console().print(table, width=max(WIDE, console().width))


def _records(source: Path, topic: str, pipeline: str | None, offset: int) -> Iterator[tuple[int, WireRecord]]:
    if source.suffix == ".toml":
        with published(load_config(source)) as log:
            yield from _decoded(log, topic, pipeline, offset)
        return
    with source.open("rb") as head:
        is_log = head.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    if not is_log:
        yield 0, decode_at(str(source), source.read_bytes())
        return
    with published_file(source) as reader:
        yield from _decoded(reader, topic, pipeline, offset)


def _decoded(reader: TopicReader, topic: str, pipeline: str | None, offset: int) -> Iterator[tuple[int, WireRecord]]:
    for stored in reader.read(topic, offset=offset):
        record = decoded(topic, stored)
        if pipeline is None or record.pipeline == pipeline:
            yield stored.offset, record


def _cells(record: WireRecord) -> tuple[str, ...]:
    name = f"{record.pipeline} epoch {record.epoch}"
    if isinstance(record, CloseMarker):
        return "marker", name, "", instant(record.start_ms), instant(record.through_ms), "closed"
    times = instant(record.window.start_ms), instant(record.window.end_ms)
    key = key_text(decode_key(record.key))
    if isinstance(record, Release):
        content = (
            f"{record.sketch.shape} epsilon of the bits {epsilon_of(record.sketch.flip_threshold):.6g}, "
            f"ones {int(record.sketch.ones().sum())}"
        )
        return "release", name, key, *times, content
    silent = max(0, record.decided - record.released)
    content = (
        f"{record.released} of {record.windows} windows"
        + (f" ({silent} empty or withheld)" if silent else "")
        + f", estimate {record.value:.6g}, revision {record.revision}"
    )
    return record.grain, name, key, *times, content + ("" if record.complete else ", not complete")


def _as_json(record: WireRecord) -> dict[str, object]:
    """Every field of a record. epsilon_bits, of releases only (of a merge it would be no privacy parameter), is what
    the bits cost an item; what a selected key costs it besides stands in no record.

    estimate, low, high and status of a roll-up are those of the windows that have a release, as they are published.
    """
    common = {
        "pipeline": record.pipeline,
        "epoch": record.epoch,
        "partition": record.partition,
        "partitions": record.partitions,
    }
    if isinstance(record, CloseMarker):
        return {
            "kind": "marker",
            **common,
            "from": instant(record.start_ms),
            "to": instant(record.through_ms),
            "window_ms": record.window_ms,
            "fingerprint": record.fingerprint,
        }
    common |= {
        "key": key_json(decode_key(record.key)),
        "from": instant(record.window.start_ms),
        "to": instant(record.window.end_ms),
        "unit": record.unit,
    }
    if isinstance(record, Release):
        sketch = record.sketch
        return {
            "kind": "release",
            **common,
            "release_id": record.release_id.hex(),
            "buckets": sketch.shape.buckets,
            "levels": sketch.shape.levels,
            "k": sketch.flip_threshold,
            "epsilon_bits": epsilon_of(sketch.flip_threshold),
            "hash": sketch.hash,
            "bits": base64.b64encode(sketch.bits).decode(),
        }
    return {"kind": record.grain, **common, **_rollup_json(record)}


def _rollup_json(record: RollupRecord) -> dict[str, object]:
    return {
        "zone": record.zone,
        "released": record.released,
        "decided": record.decided,
        "windows": record.windows,
        "complete": record.complete,
        "revision": record.revision,
        "buckets": record.tally.shape.buckets,
        "levels": record.tally.shape.levels,
        "k": record.tally.flip_threshold,
        "hash": record.tally.hash,
        "ones_by_level": record.tally.counts.sum(axis=1).tolist(),
        "merged_k": record.merged.flip_threshold,
        "merged": base64.b64encode(record.merged.bits).decode(),
        "estimate": record.value,
        "standard_error": finite(record.standard_error),
        "low": record.low,
        "high": finite(record.high),
        "confidence": record.confidence,
        "status": record.status,
    }
