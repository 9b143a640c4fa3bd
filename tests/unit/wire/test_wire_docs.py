"""docs/wire-format.md against the code: its tables, its hex dumps and its program."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from reference.wire_samples import (
    bare,
    counted_release,
    marker,
    raw_fields,
    release,
    rollup,
    sized_rollup,
    span_marker,
)

from sfm_stream.sketch.shape import SketchShape
from sfm_stream.wire.codec import WireRecord, decode, encode
from sfm_stream.wire.record_layouts import LAYOUTS

PAGE = (Path(__file__).parents[3] / "docs" / "wire-format.md").read_text(encoding="utf-8")
SHAPE = SketchShape(16, 4)
RECORDS: dict[str, WireRecord] = {
    "release": release(SHAPE),
    "close marker": marker(),
    "roll-up": rollup(SHAPE),
    "release, version 2": counted_release(SHAPE),
    "close marker, version 2": span_marker(),
    "roll-up, version 2": sized_rollup(SHAPE),
    "roll-up, version 3": bare(sized_rollup(SHAPE)),
}
NAMES = pytest.mark.parametrize("name", RECORDS)


def fenced(info: str) -> str:
    [block] = re.findall(rf"^```{re.escape(info)}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return block


def dump(data: bytes) -> str:
    """The lines of a hex block, as they must stand on the page."""
    fields = raw_fields(data)
    width = max(map(len, fields))
    return "".join(f"{name:<{width}}  {raw.hex(' ')}\n" for name, raw in fields.items())


def table(version: int, kind: int) -> list[list[str]]:
    section = (
        PAGE.split(f", kind {kind}\n" if version == 1 else f", kind {kind}, version {version}\n")[1]
        .strip()
        .split("\n\n")[0]
    )
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in section.splitlines()[2:]]


@NAMES
def test_the_hex_on_the_page_is_the_record(name: str) -> None:
    block = fenced(f"hex {name}")
    data = bytes.fromhex("".join(line.split(maxsplit=1)[1] for line in block.splitlines()))
    assert decode(data) == RECORDS[name]
    assert block == dump(encode(RECORDS[name]))


@NAMES
def test_the_tables_are_the_layouts(name: str) -> None:
    version, kind = decode_head(encode(RECORDS[name]))
    rows, layout = table(version, kind), LAYOUTS[version][kind]
    raw = raw_fields(encode(RECORDS[name]))
    assert [(row[1], row[2]) for row in rows[1:]] == [(field.name, field.wire.name) for field in layout]
    assert rows[0][2:] == [f"array of {len(layout)}", f"`{raw['header'].hex(' ')}`"]
    named = {
        "P": "pipeline",
        "H": "hash",
        "G": "grain",
        "Z": "zone",
        "S": "span",
        "L": "spans",
        "O": "origin",
        "E": "count_epsilon",
    }
    lengths = {letter: len(raw.get(field, b"")) for letter, field in named.items()}
    lengths |= {"N": SHAPE.nbytes, "W": 2, "D": 4 * 3 * SHAPE.levels, "C": 8 * 3}
    at = 0
    for row, field in zip(rows, raw, strict=True):
        offset = row[0].strip("`")
        assert re.fullmatch(r"[0-9PHGZSLOENWDC+*]+", offset)
        assert eval(offset, {}, lengths) == at, field  # noqa: S307 -- letters and digits
        at += len(raw[field])


def decode_head(data: bytes) -> tuple[int, int]:
    version, kind = msgpack.unpackb(data, raw=False)[:2]
    return version, kind


def test_the_program_on_the_page_reads_what_is_written() -> None:
    scope: dict[str, Any] = {}
    program = fenced("python")
    assert set(re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE)) == {"msgpack", "numpy"}
    exec(compile(program, "wire-format.md", "exec"), scope)  # noqa: S102 -- the page's own code
    first, last = release(SHAPE), rollup(SHAPE, releases=24)
    record = scope["read"](encode(first))
    assert (record["pipeline"], record["id"], record["key"]) == ("visits", first.release_id, ["/pricing"])
    assert np.array_equal(record["cells"], first.sketch.cells())
    assert math.isclose(scope["epsilon"](record), 1.0)
    record = scope["read"](encode(last))
    assert np.array_equal(record["tally"], last.tally.counts)
    assert np.array_equal(record["cells"], last.merged.cells())
    assert scope["read"](encode(marker()))["fingerprint"] == marker().fingerprint
    with pytest.raises(ValueError, match="version 4"):
        scope["read"](msgpack.packb([4, 1]))


def test_the_program_on_the_page_reads_version_2() -> None:
    scope: dict[str, Any] = {}
    exec(compile(fenced("python"), "wire-format.md", "exec"), scope)  # noqa: S102 -- the page's own code
    first, last = counted_release(SHAPE), sized_rollup(SHAPE, releases=24)
    record = scope["read"](encode(first))
    assert (record["span"], record["count"], record["count_epsilon"]) == ("1m", -5, "0.25")
    assert np.array_equal(record["cells"], first.sketch.cells())
    assert math.isclose(scope["epsilon"](record), 1.25)
    record = scope["read"](encode(last))
    assert last.tally.sizes is not None
    assert np.array_equal(record["tally"], last.tally.counts)
    assert np.array_equal(record["ones"], last.tally.sizes.ones)
    assert record["counts"].tolist() == [count.value for count in last.tally.sizes.counts if count]
    assert scope["read"](encode(span_marker()))["span"] == "hour"


def test_the_program_on_the_page_reads_version_3() -> None:
    scope: dict[str, Any] = {}
    exec(compile(fenced("python"), "wire-format.md", "exec"), scope)  # noqa: S102 -- the page's own code
    record = scope["read"](encode(bare(sized_rollup(SHAPE))))
    assert (record["value"], record["released"], record["key"]) == (1234.5, 3, ["/pricing"])
    assert math.isclose(scope["epsilon"](record), 1.25)
