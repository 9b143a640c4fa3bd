"""A topic of the output file as an input: how the roll-up worker reads the sketches of the ingest worker."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import StateError, UsageError
from sfm_stream.transport.files.log_reader import LogReader
from sfm_stream.transport.files.storage_faults import NEW_EPOCH
from sfm_stream.types import InputEnd, RecordBatch, StoredRecord

BATCH_RECORDS = 256


class StoredBatch:
    """A RecordBatch of consecutive records of a topic of the log; arrivals are their timestamps."""

    def __init__(self, records: Sequence[StoredRecord]) -> None:
        self.partition = records[0].partition
        self.first = records[0].offset
        self.next_offset = records[-1].offset + 1
        self.count = len(records)
        self._records = records

    def offsets(self) -> NDArray[np.int64]:
        return np.array([record.offset for record in self._records], np.int64)

    def arrivals(self) -> NDArray[np.int64]:
        return np.array([record.timestamp_ms for record in self._records], np.int64)

    def keys(self) -> list[bytes | None]:
        return [record.key for record in self._records]

    def values(self) -> list[bytes | None]:
        return [record.value for record in self._records]


class TopicInput:
    """A topic of a log as input, `partitions` of them. It never ends for ever: records appended later follow."""

    def __init__(self, log: LogReader, topic: str, partitions: int = 1, batch_records: int = BATCH_RECORDS) -> None:
        self.partitions = partitions
        self._log = log
        self._topic = topic
        self._batch_records = batch_records
        self._next = [0] * partitions

    def read(self, partition: int) -> RecordBatch | InputEnd:
        """Up to `batch_records` committed records, or InputEnd(partition, False).

        Raises StateError where the log ends before the offset to read at: it is not the one the position is of.
        """
        at = self._next[partition]
        records = self._log.page(self._topic, partition, at, self._batch_records)
        if not records:
            if at > (end := self._log.end_offset(self._topic, partition)):
                raise StateError(
                    f"{self._log.path}: topic {self._topic!r}, partition {partition} should be read from offset {at}, "
                    f"but it ends at {end}: the file was changed by another program. Move it away and {NEW_EPOCH}"
                )
            return InputEnd(partition, False)
        self._next[partition] = records[-1].offset + 1
        return StoredBatch(records)

    def seek(self, partition: int, offset: int) -> None:
        if offset < 0:
            raise UsageError(f"there is no offset {offset}")
        self._next[partition] = offset

    def close(self) -> None:
        """Does nothing: whoever opened the log closes it."""
