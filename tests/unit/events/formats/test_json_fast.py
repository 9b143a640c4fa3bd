"""The fast reader on lines of one text: as many values as lines are no proof that each line is one."""

from __future__ import annotations

import numpy as np
import pytest
from support.json_records import SCHEMAS, good

from sfm_stream.events.formats.json_format import JsonFormat
from sfm_stream.transport.files.line_batch import LineBatch

SCHEMA = SCHEMAS["plain"]
FIRST, SECOND = good(SCHEMA, 1), good(SCHEMA, 2)
NO_RECORDS = {
    "two objects in a line": FIRST + SECOND,
    "an object over two lines, and one behind it": b'{"a":{}\n,' + FIRST[1:] + SECOND,
    "an object that ends where a line begins as one": b'{"a":\n{},' + FIRST[1:] + SECOND,
    "a line of white space, and two objects": b" \n" + FIRST + SECOND,
    "two objects, and a line of white space": FIRST + SECOND + b"\n\t",
}
AS_IN_A_FILE = {"\\n": b"\n", "\\r\\n": b"\r\n", "nothing": b""}


@pytest.mark.parametrize("text", NO_RECORDS.values(), ids=NO_RECORDS)
@pytest.mark.parametrize("end", AS_IN_A_FILE.values(), ids=AS_IN_A_FILE)
def test_lines_that_are_no_records_are_odd(text: bytes, end: bytes) -> None:
    form = JsonFormat(SCHEMA)
    lines = LineBatch(text + end, 0, 1000).values()
    columns = form.columns(lines)
    assert (columns.keys, columns.items, columns.odd) == ([], [], [*range(len(lines))])


def test_a_block_behind_one_that_could_not_be_decoded_is_answered_for() -> None:
    form = JsonFormat(SCHEMA)
    for text, odd in ((b"x", [0]), (FIRST + b"\n" + SECOND, []), (FIRST + b"\nx\n" + SECOND, [1]), (SECOND, [])):
        columns = form.columns(LineBatch(text, 0, 1000).values())
        assert columns.odd == odd
        records = [line for line in text.split(b"\n") if line != b"x"]
        assert columns.items == [b"u1" if record == FIRST else b"u2" for record in records]
        assert np.array_equal(
            columns.times, [1_700_000_000_001 if item == b"u1" else 1_700_000_000_002 for item in columns.items]
        )
