"""Versions 1 to 3 to the byte: files that no later code may read or write differently."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import ModuleType

import pytest
from golden import make_wire_v1, make_wire_v2, make_wire_v3
from reference.naive_wire import read

from sfm_stream.wire.codec import RollupRecord, decode, encode

VERSION_1 = {
    "release": "04954c39c3a5562b8031282969cdf3f8dbeb2593f92c6823fa0e3e11d1b0e77c",
    "close_marker": "9ff6cb490fea751418ca22ed990ae3ab28e79db0541addd097fad26a63418a99",
    "rollup": "3aa9efe465b2b584dd8f40832676a46b88c7ba13349d14517f31e92c368ce829",
}
VERSION_2 = {
    "release": "1a316e5fd9102984bde07be99003d745c8637eac709421c01d57f044355b26fd",
    "release_without_count": "14c669fa0e9f840f6f690ebd11e8b3938c0b6a2770a0dcfcf0b92919ebc50368",
    "close_marker": "97625d8c4cb8e6652abfcd14ca01d9c63343a1ba34b5cfc9e65daabe504a0dc0",
    "rollup": "17d5f8812dca3138d2c364d1192b252fe7f0437a25c8a230096d61087dee2170",
    "rollup_without_counts": "a1a039ff62673d457292e88f1e52e95b88e0bc6311622e7cf51716dc356ef977",
    "rollup_raw": "11a239f9711e9438b937229296e2248b8b6876fe552d4612ea6b3818377725c5",
}
VERSION_3 = {
    "rollup": "5cee6fee843b4c97f2a3009bac2d3ddc9c7904e48a2d111e47f0b11faed079ff",
    "rollup_without_counts": "577feb49197c9cbb96801d9eea5f0d0bd14ba5622ce10067d799635fd19eff98",
    "rollup_raw": "64fb545fec2b542619f27ab762af2d6ee9665e713f758737e259b25e0a3b12dd",
    "rollup_of_no_named_span": "70a1f5de3bdbb4c90d2abdce3d8545ed7bd7dd67465e01bd414fd51c0e305f90",
}
VERSIONS = {1: (make_wire_v1, VERSION_1), 2: (make_wire_v2, VERSION_2), 3: (make_wire_v3, VERSION_3)}


@pytest.mark.parametrize(
    ("version", "name"), [(version, name) for version, (_, digests) in VERSIONS.items() for name in digests]
)
def test_golden_files(version: int, name: str) -> None:
    made: ModuleType
    made, digests = VERSIONS[version]
    folder: Path = made.FOLDER
    data = (folder / f"{name}.msgpack").read_bytes()
    assert hashlib.sha256(data).hexdigest() == digests[name]
    record, found = made.records()[name], decode(data)
    assert encode(record) == data
    assert found == record
    if version == 2 and isinstance(found, RollupRecord):  # two tallies of equal counts are equal, whatever sizes say
        assert found.tally.sizes == record.tally.sizes
    assert (read(data)["version"], read(data)["pipeline"]) == (version, "visits")
