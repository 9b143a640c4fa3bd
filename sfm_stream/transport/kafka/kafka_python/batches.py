"""Record batches of Kafka as columns: they stay bytes until they are asked for, and are then read in one pass.

kafka-python makes an object of every record, which costs more than all that is done with it afterwards. Its fetcher is
made to hand on whole batches instead (hooks/whole_batches.py).
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfm_stream.transport.kafka.kafka_python.batch_runs import APPENDED
from sfm_stream.transport.kafka.kafka_python.record_data import Columns, read_batches
from sfm_stream.transport.kafka.kafka_python.translation import Translation
from sfm_stream.transport.kafka.topic_facts import CREATE_TIME, LOG_APPEND_TIME
from sfm_stream.types import NO_TIME

_ATTRIBUTES = 22
"""The lower byte of the attributes in the header of a batch."""


class KafkaBatch:
    """Implements cluster_values.LogBatch and WireBatch: batches of the log that follow each other, of one clock.

    They are read together: the work for one batch is as much as for hundreds of records. Records before `first` are
    left out. raws: as in WireBatch. translated: what makes an error of this package out of corrupt bytes.
    unpacked_bytes: an upper bound of their size once they are decompressed. batches: how many they are.
    """

    def __init__(
        self,
        partition: int,
        first: int,
        next_offset: int,
        raws: list[bytes],
        translated: Translation = nullcontext,
        unpacked_bytes: int = 0,
        batches: int = 1,
    ) -> None:
        self.partition, self.first, self.next_offset, self.batches = partition, first, next_offset, batches
        self._raws, self._translated, self.unpacked_bytes = raws, translated, unpacked_bytes
        appended = len(raws[0]) > _ATTRIBUTES and raws[0][_ATTRIBUTES] & APPENDED
        self.timestamp_type = LOG_APPEND_TIME if appended else CREATE_TIME
        self._columns: Columns | None = None

    @property
    def raws(self) -> list[bytes]:
        """As in WireBatch."""
        return self._raws

    @property
    def count(self) -> int:
        return len(self._read().offsets)

    def offsets(self) -> NDArray[np.int64]:
        return self._read().offsets

    def arrivals(self) -> NDArray[np.int64]:
        return self._read().arrivals

    def keys(self) -> list[bytes | None]:
        return self._read().keys()

    def values(self) -> list[bytes | None]:
        return self._read().values()

    def _read(self) -> Columns:
        if self._columns is None:
            with self._translated():
                self._columns, self._raws = read_batches(self._raws, self.first), [b""]
        return self._columns


class OldBatch(KafkaBatch):
    """Records of a message format before 2, which logs written by old brokers still hold.

    appended: whether the broker stamped them; None where the format has no time stamps.
    """

    def __init__(
        self, partition: int, first: int, next_offset: int, records: list[Any], appended: bool | None = None
    ) -> None:
        super().__init__(partition, first, next_offset, [b""])
        self.timestamp_type = "" if appended is None else LOG_APPEND_TIME if appended else CREATE_TIME
        keys, values = [record.key for record in records], [record.value for record in records]
        self._columns = Columns(
            np.array([record.offset for record in records], np.int64),
            np.array([NO_TIME if record.timestamp is None else record.timestamp for record in records], np.int64),
            lambda: keys,
            lambda: values,
        )
