"""Writes wire_v3/: python tests/golden/make_wire_v3.py, from the root of the project, with tests/ on PYTHONPATH.

Version 3 is fixed. If these files ever change, that is a new version of the format, not a new golden file.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reference.wire_samples import START_MS, bare, raw_rollup, rollup, sized_rollup

from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import Window
from sfm_stream.wire.codec import WireRecord, encode

FOLDER = Path(__file__).parent / "wire_v3"


def records() -> dict[str, WireRecord]:
    shape = SketchShape(64, 12)
    day = Window(START_MS - 3_600_000, START_MS + 82_800_000)
    without_counts = sized_rollup(shape, ("/pricing", -7, b"\x00\xff"), 3, count_epsilon=None)
    return {
        "rollup": replace(bare(sized_rollup(shape, "/prïcing", 24)), grain="day", window=day, zone="Europe/Berlin"),
        "rollup_without_counts": replace(bare(without_counts), complete=False, decided=31),
        "rollup_raw": bare(raw_rollup(shape, ())),
        "rollup_of_no_named_span": bare(rollup(shape, 7)),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, record in records().items():
        (FOLDER / f"{name}.msgpack").write_bytes(encode(record))
