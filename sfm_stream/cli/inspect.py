"""`sfm-stream inspect`: published records, decoded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import click

from sfm_stream.answers.key_notation import key_text
from sfm_stream.answers.published_records import decoded
from sfm_stream.answers.record_json import record_json
from sfm_stream.answers.rollup_sketches import with_sketches
from sfm_stream.cli.output import echo_json
from sfm_stream.composition.published import published, published_file
from sfm_stream.config.config import load_config
from sfm_stream.errors import StateError
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
    with _open(source) as reader:
        if reader is None:
            found = iter([(0, decode_at(str(source), source.read_bytes()))])
        else:
            found = _decoded(reader, topic, pipeline, offset)
        records = islice(found, limit)
        if as_json:
            whole = records if reader is None or topic == SKETCHES else _with_sketches(reader, records)
            for at, record in whole:
                echo_json({"offset": at, **record_json(record)})
        else:
            from sfm_stream.cli.screen import print_table  # rich, which programs that read JSON need not wait for

            heads = ("offset", "kind", "pipeline", "key", "from (UTC)", "to", "content")
            print_table(heads, ((str(at), *_cells(record)) for at, record in records))


@contextmanager
def _open(source: Path) -> Iterator[TopicReader | None]:
    """What reads the topics of SOURCE; None where it is a file with the bytes of one record."""
    if source.suffix == ".toml":
        with published(load_config(source)) as log:
            yield log
        return
    with source.open("rb") as head:
        is_log = head.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    if not is_log:
        yield None
        return
    with published_file(source) as reader:
        yield reader


def _decoded(reader: TopicReader, topic: str, pipeline: str | None, offset: int) -> Iterator[tuple[int, WireRecord]]:
    for stored in reader.read(topic, offset=offset):
        record = decoded(topic, stored)
        if pipeline is None or record.pipeline == pipeline:
            yield stored.offset, record


def _with_sketches(reader: TopicReader, records: Iterable[tuple[int, WireRecord]]) -> Iterator[tuple[int, WireRecord]]:
    """The records of the roll-up topic, with what is made of their releases."""
    offsets: deque[int] = deque()

    def rollups() -> Iterator[RollupRecord]:
        for at, record in records:
            if not isinstance(record, RollupRecord):
                raise StateError(f"topic {ROLLUPS}, offset {at}: a record of another kind")
            offsets.append(at)
            yield record

    for record in with_sketches(reader, rollups()):
        yield offsets.popleft(), record


def _cells(record: WireRecord) -> tuple[str, ...]:
    name = f"{record.pipeline} epoch {record.epoch}"
    if isinstance(record, CloseMarker):
        closed = "closed" if record.span is None else f"closed, span {record.span}"
        return "marker", name, "", instant(record.start_ms), instant(record.through_ms), closed
    times = instant(record.window.start_ms), instant(record.window.end_ms)
    key = key_text(decode_key(record.key))
    if isinstance(record, Release):
        content = (
            f"{record.sketch.shape} epsilon of the bits {epsilon_of(record.sketch.flip_threshold):.6g}, "
            f"ones {int(record.sketch.ones().sum())}"
        )
        if (count := record.sketch.count) is not None:
            content += f"; noisy count {count.value} at epsilon {float(count.epsilon):.6g}"
        return "release", name, key, *times, content
    silent = max(0, record.decided - record.released)
    content = (
        f"{record.released} of {record.windows} windows"
        + ("" if record.origin is None else f" of span {record.span}, {record.origin}")
        + (f" ({silent} empty or withheld)" if silent else "")
        + f", estimate {record.value:.6g}, revision {record.revision}"
    )
    return record.grain, name, key, *times, content + ("" if record.complete else ", not complete")
