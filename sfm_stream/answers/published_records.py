"""What a pipeline has published: the records of its topics, decoded, in order of the topic."""

from __future__ import annotations

from collections.abc import Iterator

from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import StoredRecord
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord, WireRecord, decode_at


def releases_and_markers(reader: TopicReader, pipeline: str) -> Iterator[tuple[Release | CloseMarker, bytes]]:
    """Every release and every close marker of the pipeline, copies too, each with its bytes."""
    for stored in reader.read(SKETCHES):
        record = decoded(SKETCHES, stored)
        if not isinstance(record, RollupRecord) and record.pipeline == pipeline:
            yield record, stored.value


def rollup_revisions(reader: TopicReader, pipeline: str) -> Iterator[RollupRecord]:
    """Every revision of every roll-up of the pipeline."""
    for stored in reader.read(ROLLUPS):
        record = decoded(ROLLUPS, stored)
        if isinstance(record, RollupRecord) and record.pipeline == pipeline:
            yield record


def decoded(topic: str, stored: StoredRecord) -> WireRecord:
    """The record that is stored. Raises FormatError naming where."""
    return decode_at(f"topic {topic}, partition {stored.partition}, offset {stored.offset}", stored.value)
