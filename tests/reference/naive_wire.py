"""An independent reader of the wire format: msgpack and struct, nothing of the package, no speed."""

from __future__ import annotations

import hashlib
import struct
from decimal import Decimal

import msgpack

FIELDS = {
    1: {
        1: "version kind id pipeline epoch partition partitions start_ms end_ms unit buckets levels k hash bits key",
        2: "version kind pipeline epoch partition partitions start_ms through_ms window_ms fingerprint",
        3: "version kind pipeline epoch partition partitions grain start_ms end_ms zone unit windows "
        "decided released complete revision value standard_error low high confidence status buckets levels k hash "
        "planes merged_k merged key",
    },
    2: {
        1: "version kind id pipeline epoch partition partitions span start_ms end_ms unit buckets levels k hash bits "
        "count_epsilon count key",
        2: "version kind pipeline epoch partition partitions span spans start_ms through_ms window_ms fingerprint",
        3: "version kind pipeline epoch partition partitions origin span grain start_ms end_ms zone unit windows "
        "decided released complete revision value standard_error low high confidence status buckets levels k hash "
        "planes ones count_epsilon counts merged_k merged key",
    },
    3: {
        3: "version kind pipeline epoch partition partitions origin span grain start_ms end_ms zone unit windows "
        "decided released complete revision value standard_error low high confidence status buckets levels k hash "
        "count_epsilon key",
    },
}
STATUSES = ["ok", "empty", "saturated", "uninformative"]


def read(data: bytes) -> dict[str, object]:
    """The fields by name; `cells` (and `merged_cells`) as lists [level][bucket], of a roll-up the counts of its tally.

    Of version 2: `ones` of a roll-up as lists [release][level], `counts` as a list, `count_epsilon` as a decimal. Of
    version 3 a roll-up has no cells.
    """
    values = msgpack.unpackb(data, raw=False, use_list=True)
    record = dict(zip(FIELDS[values[0]][values[1]].split(), values, strict=True))
    if record["kind"] == 1:
        assert record["id"] == naive_id(record)
        record["cells"] = _cells(record["bits"], record)
    if record["kind"] == 3:
        record["status"] = STATUSES[record["status"]]
    if record["version"] < 3 and record["kind"] == 3:
        record["cells"] = _counts(record)
        record["merged_cells"] = _cells(record["merged"], record)
    if record["version"] >= 2 and record["kind"] != 2:
        record["count_epsilon"] = Decimal(record["count_epsilon"] or 0)
        assert record["count_epsilon"] or not record.get("count")
    if record["version"] == 2 and record["kind"] == 3:
        ones, levels = struct.unpack(f">{len(record['ones']) // 4}I", record["ones"]), record["levels"]
        record["ones"] = [list(ones[at : at + levels]) for at in range(0, len(ones), levels)]
        record["counts"] = list(struct.unpack(f">{len(record['counts']) // 8}q", record["counts"]))
        assert record["ones"] == sorted(record["ones"])
    return record


def naive_id(record: dict) -> bytes:
    """The release id from its definition, packed by hand."""
    pipeline = record["pipeline"].encode()
    text = bytes([0xA0 | len(pipeline)]) if len(pipeline) < 32 else bytes([0xD9, len(pipeline)])
    numbers = [struct.pack(">BQ", 0xCF, record[name]) for name in ("epoch", "partition", "start_ms", "end_ms")]
    key = msgpack.packb(record["key"], use_bin_type=True)
    return hashlib.sha256(b"\x96" + text + pipeline + b"".join(numbers) + key).digest()[:16]


def _bit(bitmap: bytes, number: int) -> int:
    return bitmap[number // 8] >> (number % 8) & 1


def _cells(bitmap: bytes, record: dict) -> list[list[int]]:
    buckets, levels = record["buckets"], record["levels"]
    assert len(bitmap) * 8 == buckets * levels
    return [[_bit(bitmap, level * buckets + bucket) for bucket in range(buckets)] for level in range(levels)]


def _counts(record: dict) -> list[list[int]]:
    buckets, levels, width = record["buckets"], record["levels"], record["released"].bit_length()
    size = buckets * levels // 8
    assert len(record["planes"]) == width * size
    planes = [_cells(record["planes"][place * size :][:size], record) for place in range(width)]
    return [
        [sum(planes[place][level][bucket] << place for place in range(width)) for bucket in range(buckets)]
        for level in range(levels)
    ]
