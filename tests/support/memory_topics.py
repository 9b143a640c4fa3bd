"""Published topics in memory: a TopicReader without a broker or a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sfm_stream.types import StoredRecord
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.codec import CloseMarker, decode


class Topics:
    """Published records in memory."""

    def __init__(self, sketches: Iterable[bytes] = (), rollups: Iterable[bytes] = ()) -> None:
        self._records = {SKETCHES: list(sketches), ROLLUPS: list(rollups)}

    def read(
        self,
        topic: str,
        partition: int | None = None,
        offset: int = 0,
        since_ms: int = 0,
        patience_s: float = 0,
    ) -> Iterator[StoredRecord]:
        for number, payload in enumerate(self._records[topic]):
            record = decode(payload)
            end_ms = record.through_ms if isinstance(record, CloseMarker) else record.window.end_ms
            if number >= offset and partition in (None, record.partition) and end_ms >= since_ms:
                yield StoredRecord(number, record.partition, b"", payload, 0)
