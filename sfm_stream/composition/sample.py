"""A sample of an input, for `check`: what extraction makes of some records, which are not counted."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sfm_stream.clock import now_ms
from sfm_stream.composition.late_records import LateRecords
from sfm_stream.config.config import Config
from sfm_stream.events.key_table import KeyTable
from sfm_stream.events.placement import Placement
from sfm_stream.privacy.coins import SYSTEM_COINS
from sfm_stream.privacy.key_rules import DeclaredKeys
from sfm_stream.types import NO_TIME, Reason, RecordBatch
from sfm_stream.wire.keys import encode_key
from sfm_stream.workers.extractor import extractor_of


@dataclass(frozen=True, slots=True)
class SampleRow:
    """What extraction makes of one record; key and cell are digests under a key that nobody keeps."""

    partition: int
    offset: int
    event_ms: int | None
    key: str | None
    cell: str | None
    reason: Reason


@dataclass(frozen=True, slots=True)
class Sample:
    """The sampled records. late: how many would be dropped as late if they are counted in order of time."""

    rows: tuple[SampleRow, ...]
    reasons: Counter[Reason]
    late: int = 0


def sample(
    config: Config, batches: Iterator[RecordBatch], records: int, placement: Callable[[int], Placement] | None = None
) -> Sample:
    """What extraction makes of up to `records` records. placement: as in IngestWorker."""
    latest = config.event.latest or now_ms() + config.window.max_future_skew
    keys = KeyTable(config.keys.effective if isinstance(config.keys, DeclaredKeys) else None)
    extractor = extractor_of(config, keys, latest)
    secret = SYSTEM_COINS.digits(32).tobytes()
    placements: dict[int, Placement] = {}
    rows: list[SampleRow] = []
    late = LateRecords(config)
    for batch in batches:
        columns = extractor.columns([batch])
        if placement is not None:
            if batch.partition not in placements:
                placements[batch.partition] = placement(batch.partition)
            columns = placements[batch.partition].judged(columns, keys)
        late.add(columns, records - len(rows))
        for offset, event, key_id, cell, reason in zip(
            columns.offsets.tolist(),
            columns.event_ms.tolist(),
            columns.key_ids.tolist(),
            columns.cells.tolist(),
            columns.reasons.tolist(),
            strict=True,
        ):
            counted = reason == Reason.OK
            rows.append(
                SampleRow(
                    batch.partition,
                    offset,
                    None if event == NO_TIME else event,
                    _digest(encode_key(keys[key_id]), secret) if counted else None,
                    _digest(cell.to_bytes(4, "big"), secret) if counted else None,
                    Reason(reason),
                )
            )
        if len(rows) >= records:
            break
    shown = tuple(rows[:records])
    return Sample(shown, Counter(row.reason for row in shown), late.count)


def _digest(data: bytes, secret: bytes) -> str:
    return hashlib.blake2b(data, digest_size=5, key=secret).hexdigest()
