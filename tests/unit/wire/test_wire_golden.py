"""Version 1 to the byte: files that no later code may read or write differently."""

from __future__ import annotations

import hashlib

import pytest
from golden.make_wire_v1 import FOLDER, records
from reference.naive_wire import read

from sfm_stream.wire.codec import decode, encode

DIGESTS = {
    "release": "04954c39c3a5562b8031282969cdf3f8dbeb2593f92c6823fa0e3e11d1b0e77c",
    "close_marker": "9ff6cb490fea751418ca22ed990ae3ab28e79db0541addd097fad26a63418a99",
    "rollup": "3aa9efe465b2b584dd8f40832676a46b88c7ba13349d14517f31e92c368ce829",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_golden_files(name: str) -> None:
    data = (FOLDER / f"{name}.msgpack").read_bytes()
    assert hashlib.sha256(data).hexdigest() == DIGESTS[name]
    record = records()[name]
    assert encode(record) == data
    assert decode(data) == record
    assert read(data)["pipeline"] == "visits"
