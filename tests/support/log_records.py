"""How many records a topic of an output file holds."""

from __future__ import annotations

from sfm_stream.transport.files.log_reader import LogReader


def record_count(reader: LogReader, topic: str) -> int:
    """Offsets have no gaps and nothing is ever deleted, so the ends of the partitions say it."""
    return sum(reader.end_offset(topic, partition) for partition in reader.partitions(topic))
