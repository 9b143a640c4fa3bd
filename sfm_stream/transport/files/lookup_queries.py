"""How records are looked up by stamp and key: by seeks in one index, many of them in one query, and never by a scan."""

from __future__ import annotations

from collections.abc import Sequence

from sfm_stream.types import StoredRecord

BY_TIME = "records INDEXED BY records_by_time"
STAMPS = """
WITH RECURSIVE stamps (at) AS (
    SELECT min(timestamp_ms) FROM records INDEXED BY records_by_time WHERE topic = ?1 AND timestamp_ms > ?2
    UNION ALL
    SELECT (SELECT min(timestamp_ms) FROM records INDEXED BY records_by_time WHERE topic = ?1 AND timestamp_ms > at)
    FROM stamps WHERE at <= ?3 LIMIT ?4
) SELECT at FROM stamps WHERE at IS NOT NULL
"""
"""The stamps of a topic after one, each found by a seek: up to the first one behind another, and up to so many."""
OF_STAMP = "topic = ? AND timestamp_ms = ? AND (key, partition, offset) > (?, ?, ?) ORDER BY key, partition, offset"
"""The records of one stamp behind a place, in order."""


def under_keys(stamps: int, keys: int) -> str:
    """The records of so many stamps and keys, behind a place, in order: a seek in the index for each stamp and key.

    With the plus SQLite takes no range of the index in place of the seeks.
    """
    return (
        f"topic = ? AND timestamp_ms IN ({_marks(stamps)}) AND key IN ({_marks(keys)}) "
        "AND (+timestamp_ms, key, partition, offset) > (?, ?, ?, ?) ORDER BY timestamp_ms, key, partition, offset"
    )


def is_full(page: Sequence[StoredRecord], most: int, most_bytes: int) -> bool:
    """Whether more may follow a page of records, which ends with so many or right behind so many bytes of values."""
    return len(page) >= most or sum(len(each.value) for each in page) > most_bytes


def _marks(count: int) -> str:
    return ", ".join("?" * count)
