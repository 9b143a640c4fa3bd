"""A topic that is not keyed by the counting key, copied into one that is.

Every record goes to the partition of its counting key, with its bytes and its time stamp, in one transaction with the
position it was read from: the copy holds each record once, in the order in which it was read. A record without a
usable key goes along too, to the partition of its own key or number, so that it is counted among the dropped there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zlib import crc32

from sfm_stream.config import Config
from sfm_stream.errors import StateError
from sfm_stream.pipeline.extract import PythonExtractor
from sfm_stream.pipeline.partitioners import PARTITIONERS, partition_key
from sfm_stream.transport.base import Transport
from sfm_stream.types import Assigned, Commit, InputEnd, Record, RecordBatch, Revoked, Step
from sfm_stream.windows.keys import KeyTable

TARGET = "repartitioned"
_METADATA = b"repartition/1"
_FREE_ABOVE = 1_000_000


class Repartition:
    """A worker. target_partitions: of the topic that is written. moved: records copied by this process."""

    def __init__(self, config: Config, transport: Transport, target_partitions: int) -> None:
        self._config, self._transport, self._partitions = config, transport, target_partitions
        self._partitioner = PARTITIONERS[config.kafka.partitioner]
        self._limit = config.settings.limits.max_transaction_bytes
        self._pending: dict[int, list[Step]] = {}
        self._reset_keys()
        self.moved = 0

    def tick(self, stopping: Callable[[], bool]) -> None:
        """One turn: poll, and copy what came."""
        for event in self._transport.poll():
            if isinstance(event, Assigned):
                self._pending[event.partition] = []
            elif isinstance(event, Revoked):
                self._pending.pop(event.partition, None)
            elif not isinstance(event, InputEnd):
                self._pending[event.partition] += self._steps(event)
        for steps in self._pending.values():
            while steps and not stopping() and self._transport.commit(steps[0]):
                self.moved += len(steps.pop(0).publish)

    def checkpoint(self) -> None:
        """Nothing: each step commits its own position."""

    def _steps(self, batch: RecordBatch) -> list[Step]:
        """The records of a batch in transactions of bounded size, each with the position behind its last record."""
        columns = self._extractor.columns([batch])
        arrivals = batch.arrivals()
        if arrivals is None:
            raise StateError("repartition: the input has no time stamps of its own")
        steps: list[Step] = []
        records: list[Record] = []
        room = self._limit
        offsets = columns.offsets.tolist()
        rows = zip(offsets, arrivals.tolist(), columns.key_ids.tolist(), batch.keys(), batch.values(), strict=True)
        for offset, arrival, key_id, key, value in rows:
            name = partition_key(self._keys[key_id]) if key_id >= 0 else None
            place = self._place(name, key, offset)
            records.append(Record(TARGET, place, name if name is not None else key or b"", value or b"", arrival))
            room -= len(value or b"") + 64
            if room <= 0:
                steps.append(self._step(batch.partition, records, offset + 1))
                records, room = [], self._limit
        if records or not steps:
            steps.append(self._step(batch.partition, records, batch.next_offset))
        if len(self._keys) > _FREE_ABOVE:
            self._reset_keys()
        return steps

    def _place(self, name: bytes | None, key: bytes | None, offset: int) -> int:
        if name is not None:
            return self._partitioner(name, self._partitions)
        return (crc32(key) if key else offset) % self._partitions

    def _step(self, partition: int, records: Sequence[Record], next_offset: int) -> Step:
        return Step(tuple(records), (Commit(partition, next_offset, _METADATA),))

    def _reset_keys(self) -> None:
        self._keys = KeyTable()
        self._extractor = PythonExtractor(
            self._config.event_format(), self._config.shape, self._config.item_hash, keys=self._keys
        )
