"""What a real Presto made and counted (golden/make_presto_engine.py, test_presto_server.py), read and made here."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest

from sfm_stream.sketch.hashing import hash_items
from sfm_stream.wire import presto

ENGINE = json.loads((Path(__file__).parents[2] / "golden" / "presto-engine.json").read_text())
ITEMS = {
    "bigint": [1, -3, 2**63 - 1],
    "integer": [1, -3, 2**31 - 1],
    "smallint": [1, -3],
    "tinyint": [1, -3],
    "double": [1.5, -0.0, 0.0, float("nan"), float("inf")],
    "varchar": ["a", "", "é", "a longer text, of more than 32 bytes"],
    "char(3)": ["a", "abc"],
    "varbinary": [b"\x00\xff", b""],
    "date": [1, 19_675, -1],
    "timestamp": [86_400_000, 1_700_000_000_123],
    "real": np.array([1.5, -0.1], np.float32).view(np.int32).tolist(),
    "decimal(3,2)": [150, -225],
    "bigint and null": [1, 3],
}
"""Days, milliseconds, bits of a float, units of the last place: how Presto stores these types."""
COUNTS = [(base64.b64decode(text), count) for text, count in ENGINE["counts"].items()]


def test_every_set_has_its_items():
    assert ENGINE["sets_64x8"].keys() == ITEMS.keys()


@pytest.mark.parametrize("name", ITEMS)
def test_items_light_the_cells_that_the_engine_lights(name):
    theirs = presto.read_raw(base64.b64decode(ENGINE["sets_64x8"][name]))
    ours = theirs.shape.cells_of(hash_items(ITEMS[name]))  # not `add`, which leaves NaN out
    assert theirs.popcount() == len(ITEMS[name]), "no two of these share a cell"
    assert sorted(ours.tolist()) == np.flatnonzero(np.unpackbits(theirs.bits, bitorder="little")).tolist()


def test_counts_are_those_of_the_engine():
    assert len(COUNTS) == 123
    for blob, count in COUNTS:
        shape, p, bitmap = presto._read(blob)
        assert presto.presto_cardinality(np.frombuffer(bitmap, np.uint8), shape, p) == count, (shape, p)


def test_counts_beyond_2_to_the_52_are_rounded_as_there():
    large = [count for _, count in COUNTS if count > 2**52]
    assert len(large) >= 3
    assert any(count % 2 for count in large)
