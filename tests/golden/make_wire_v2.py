"""Writes wire_v2/: python tests/golden/make_wire_v2.py, from the root of the project, with tests/ on PYTHONPATH.

Version 2 is fixed. If these files ever change, that is a new version of the format, not a new golden file.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from reference.wire_samples import START_MS, counted_release, raw_rollup, sized_rollup, span_marker

from sfm_stream.sketch.sfm import NoisyCount
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import Window
from sfm_stream.wire.codec import WireRecord, encode

FOLDER = Path(__file__).parent / "wire_v2"


def records() -> dict[str, WireRecord]:
    shape = SketchShape(64, 12)
    day = Window(START_MS - 3_600_000, START_MS + 82_800_000)
    return {
        "release": counted_release(shape, ("/pricing", -7, b"\x00\xff"), count=NoisyCount(-5, Decimal("0.0250"))),
        "release_without_count": replace(counted_release(shape, "/prïcing", count=None), window=day, span="day"),
        "close_marker": span_marker(),
        "rollup": replace(sized_rollup(shape, "/prïcing", 24), grain="day", window=day, zone="Europe/Berlin"),
        "rollup_without_counts": replace(sized_rollup(shape, 7, 3, count_epsilon=None), complete=False, decided=31),
        "rollup_raw": raw_rollup(shape, ()),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, record in records().items():
        (FOLDER / f"{name}.msgpack").write_bytes(encode(record))
