"""Blocks of records: each record is in one of them, in order, whatever their number."""

from __future__ import annotations

import numpy as np
import pytest
from support.json_records import SCHEMAS, good

from sfm_stream.events import row_reader
from sfm_stream.events.formats.json_format import JsonFormat
from sfm_stream.events.key_ids import KeyIds
from sfm_stream.events.key_table import KeyTable
from sfm_stream.sketch.hashing import XXH64


@pytest.mark.parametrize("count", range(12))
def test_blocks_are_of_about_one_size_and_leave_nothing_out(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_reader, "_BLOCK_RECORDS", 4)
    schema = SCHEMAS["plain"]
    reader = row_reader.RowReader(JsonFormat(schema), XXH64, KeyIds(KeyTable(), schema.max_key_bytes))
    records = [good(schema, number) for number in range(count)]
    blocks = list(reader.blocks(records, np.full(count, -1)))
    assert [at for block, _ in blocks for at in range(count)[block]] == list(range(count))
    times = [time for _, rows in blocks for time in rows.event_ms.tolist()]
    assert times == [1_700_000_000_000 + number for number in range(count)]
    sizes = [len(rows.event_ms) for _, rows in blocks]
    assert max(sizes, default=0) <= 4
    assert max(sizes, default=0) - min(sizes, default=0) <= 1
