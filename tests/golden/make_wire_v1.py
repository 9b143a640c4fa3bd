"""Writes wire_v1/: python tests/golden/make_wire_v1.py, from the root of the project, with tests/ on PYTHONPATH.

Version 1 is fixed. If these files ever change, that is a new version of the format, not a new golden file.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reference.wire_samples import START_MS, marker, release, rollup

from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import Window
from sfm_stream.wire.codec import WireRecord, encode

FOLDER = Path(__file__).parent / "wire_v1"


def records() -> dict[str, WireRecord]:
    shape = SketchShape(64, 12)
    day = Window(START_MS - 3_600_000, START_MS + 82_800_000)
    return {
        "release": release(shape, key=("/pricing", -7, b"\x00\xff")),
        "close_marker": marker(),
        "rollup": replace(
            rollup(shape, key="/prïcing", releases=24),
            **{"grain": "day", "window": day, "zone": "Europe/Berlin", "decided": 31, "complete": False},
        ),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, record in records().items():
        (FOLDER / f"{name}.msgpack").write_bytes(encode(record))
