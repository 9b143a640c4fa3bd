"""Pointers to records that are not counted: topic, partition, offset and reason, never a key or an item."""

from __future__ import annotations

import msgspec

from sfm_stream.types import Dropped, Reason, Record
from sfm_stream.units import DEAD_LETTERS

LETTERS_A_TRANSACTION = 2000


def letters(topic: str, dropped: Dropped, now_ms: int) -> list[Record]:
    """A dead letter for each dropped record, in order of offset. Its value is a JSON object."""
    names = {code: Reason(code).name.lower() for code in set(dropped.reasons.tolist())}
    return [
        Record(
            DEAD_LETTERS,
            dropped.partition,
            b"",
            msgspec.json.encode(
                {"topic": topic, "partition": dropped.partition, "offset": offset, "reason": names[code]}
            ),
            now_ms,
        )
        for offset, code in zip(dropped.offsets.tolist(), dropped.reasons.tolist(), strict=True)
    ]
