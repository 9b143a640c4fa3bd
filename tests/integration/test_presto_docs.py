"""docs/presto.md says what the code does: its program, its commands, its tables, its SQL, its figures of the bias."""

from __future__ import annotations

import csv
import re
import shlex
import subprocess
import sys
from functools import cache

import numpy as np
import pyarrow.parquet as parquet
import pytest
from reference import presto_reader as oracle
from support.patience import PATIENCE_S
from support.presto_page import BIAS, PAGE, bias_epsilon, blocks, readme_config, require_as_said

from sfm_stream.answers.export import COLUMNS
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.sfm import GRID
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.wire import presto

SHAPE = SketchShape(4096, 24)
SQL_TYPES = {
    "text": "varchar",
    "int32": "integer",
    "int64": "bigint",
    "float64": "double",
    "bool": "boolean",
    "time": "timestamp",
    "bytes": "varbinary",
}


def test_the_program_runs(capsys):
    (code,) = blocks("python")
    exec(compile(code, "presto.md", "exec"), {})  # noqa: S102 -- the page's own code
    assert abs(int(capsys.readouterr().out) - 99_999) < 10_000  # epsilon 4, 4096 buckets: six standard errors


def test_the_commands_run_on_the_configuration_of_the_readme(tmp_path):
    (tmp_path / "app.toml").write_text(readme_config())
    (commands,) = blocks("sh")
    first = ["sfm-stream generate --events 200000 --output views.jsonl", "sfm-stream run app.toml"]
    for line in [*first, *commands.strip().splitlines()]:
        program, *arguments = shlex.split(line)
        assert program == "sfm-stream"
        call = [sys.executable, "-m", "sfm_stream.cli", *arguments]
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
        assert (done.returncode, done.stderr) == (0, ""), line
    releases, rollups = (parquet.read_table(tmp_path / f"{name}.parquet") for name in ("sketches", "rollups"))
    with (tmp_path / "tuesday.csv").open(newline="") as text:
        day = list(csv.DictReader(text))
    for number, blob in enumerate(releases["sketch"].to_pylist()[:20]):
        assert oracle.read(blob).p == releases["flip_probability"][number].as_py()
    assert set(releases["grain"].to_pylist()) == {"window"}
    assert set(rollups["grain"].to_pylist()) == {"hour", "day"}
    assert day
    assert {row["key"] for row in day} == {'["/p/7"]'}


def test_the_table_of_columns_is_the_one_that_is_written():
    rows = re.findall(r"^\| `(\w+)` \| (varchar|integer|bigint|double|boolean|timestamp|varbinary) \|", PAGE, re.M)
    assert rows == [(name, SQL_TYPES[kind]) for name, kind in COLUMNS.items()]


def test_the_sql_names_these_columns_and_no_others():
    sql = "\n".join(blocks("sql"))
    made = [re.findall(r"^    (\w+) (\w+)", table, re.M) for table in re.findall(r"CREATE TABLE .*?\n\)", sql, re.S)]
    assert made == [
        [(name, SQL_TYPES[kind]) for name, kind in COLUMNS.items()],
        [(name, "varchar") for name in COLUMNS],
    ]
    queries = re.findall(r"SELECT .*?;", sql, re.S)
    words = re.compile(
        r"SELECT|FROM|WHERE|GROUP|BY|AND|AS|IS|NOT|NULL|TIMESTAMP|CAST|SFMSKETCH|json_extract_scalar|cardinality|merge|"
        r"from_iso8601_timestamp|from_base64|page|visitors"
    )
    for query in queries:
        assert "grain = " in query, "rows of several grains hold the same noise"
        bare = re.sub(r"'[^']*'|hive\.web\.\w+", "", query)
        names = {word for word in re.findall(r"[A-Za-z_]\w*", bare) if not words.fullmatch(word)}
        assert names <= COLUMNS.keys(), names - COLUMNS.keys()
    assert len(queries) == 3


@cache
def raw_cells(first):
    """Cells of 50,000 items from this one on, none of them flipped."""
    return np.unpackbits(PcsaSketch(SHAPE).add(np.arange(first, first + 50_000)).bits, bitorder="little")


def old_merge(a, p1, b, p2, rng):
    """The merge of an engine before the fix, from its own formulas: bits and p of two private sketches in, one out."""
    p = (p1 + p2 - 3 * p1 * p2) / (1 - 2 * p1 * p2)
    scale = (1 - 2 * p) / ((1 - 2 * p1) * (1 - 2 * p2))
    x = 1 - 2 * p - scale * (1 - p1 - a) * (1 - p2 - b)
    return (rng.random(len(a)) < np.clip(p + scale * x, 0, 1)).astype(float), p


@pytest.mark.parametrize("row", BIAS, ids=lambda row: f"{row[0]} sketches")
@pytest.mark.parametrize("column", range(5))
def test_the_figures_of_the_bias_are_those_of_the_old_formula(row, column):
    """100,000 items in sketches that share half of them; the seed is fixed, three rounds stay within these limits."""
    epsilon = bias_epsilon(column)
    count, rng = int(row[0]), np.random.default_rng(epsilon)
    p = flip_threshold_of(epsilon) / GRID
    share = 100_000 // 2 // count
    ratios = []
    for _ in range(3):
        merged = None
        for number in range(count):
            bits = raw_cells(number * share) ^ (rng.random(SHAPE.cells) < p)
            merged = (bits.astype(float), p) if merged is None else old_merge(*merged, bits.astype(float), p, rng)
        packed = np.packbits(merged[0].astype(np.uint8), bitorder="little")
        found = presto.presto_cardinality(packed, SHAPE, merged[1])
        ratios.append(found / ((count - 1) * share + 50_000))
    require_as_said(ratios, row[1 + column])


def test_the_table_of_the_bias_was_found():
    assert [row[0] for row in BIAS] == ["2", "4", "24"]
