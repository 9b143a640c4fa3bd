"""docs/presto.md on a real Presto: its SQL, its counts, its merge. `make presto` fetches one and runs this file."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest
from golden import make_presto_engine
from reference import presto_reader as oracle
from support.patience import PATIENCE_S
from support.presto_page import BIAS, ROOT, bias_epsilon, blocks, readme_config, require_as_said

from sfm_stream.estimation.estimate import estimate
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.wire import presto

HOME = os.environ.get("PRESTO_HOME")
if not HOME:
    pytest.skip("no Presto: `make presto` fetches one, of 2 GB", allow_module_level=True)
SHAPE = SketchShape(4096, 24)


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    from support.presto_server import presto_server

    with presto_server(Path(HOME), tmp_path_factory.mktemp("presto")) as server:
        yield server


@pytest.fixture(scope="module")
def exported(engine):
    """The configuration of the README, run and exported by the commands of the page into tables of the engine."""
    folder, tables = engine.folder / "app", engine.folder / "tables"
    folder.mkdir()
    (folder / "app.toml").write_text(readme_config())
    calls = ["generate --events 200000 --output views.jsonl", "run app.toml"]
    for name, topic, kind in [
        ("visitors", "sketches", "parquet"),
        ("visitors_csv", "sketches", "csv"),
        ("rollups", "rollups", "parquet"),
    ]:
        (tables / name).mkdir(parents=True)
        calls.append(f"export app.toml --format presto --topic {topic} --out {tables / name / f'rows.{kind}'}")
    for call in calls:
        words = [sys.executable, "-m", "sfm_stream.cli", *call.split()]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
    return tables


def rows_of(file):
    return parquet.read_table(file).to_pylist()


def statements():
    """The SQL of the page, on tables of this server and in the month of the README's events."""
    sql = "\n".join(blocks("sql"))
    assert sql.count("s3://warehouse/") == 2
    assert sql.count("2026-") == 2
    return [text for text in sql.split(";") if text.strip()]


@pytest.fixture(scope="module")
def answers(engine, exported):
    """What the engine says to each statement of the page, in order."""
    found = []
    for text in statements():
        text = text.replace("s3://warehouse", f"file://{exported}")
        text = text.replace("2026-01-01", "2023-11-01").replace("2026-02-01", "2023-12-01")
        found.append(engine.ask(text))
    return found


def count_of(row):
    return presto.cardinality(presto.decode(row["sketch"]))


def page_of(row):
    return json.loads(row["key"])[0]


def instant(text):
    """A timestamp of the engine, whose zone is UTC."""
    return datetime.fromisoformat(text.removesuffix(" UTC")).replace(tzinfo=UTC)


def test_each_window_is_counted_there_as_here(exported, answers):
    rows = rows_of(exported / "visitors" / "rows.parquet")
    expected = Counter((page_of(row), row["window_start"], count_of(row)) for row in rows)
    assert len(rows) > 900
    made, by_window, _, made_csv, from_csv = answers
    assert made == made_csv == [[True]]
    for said in (by_window, from_csv):
        assert Counter((page, instant(start), count) for page, start, count in said) == expected


def test_a_month_has_a_row_for_each_page_and_one_sketch_alone_is_not_changed(exported, answers):
    rows, month = rows_of(exported / "visitors" / "rows.parquet"), dict(answers[2])
    alone = {page: number for page, number in Counter(map(page_of, rows)).items() if number == 1}
    assert month.keys() == {page_of(row) for row in rows}
    assert len(alone) > 3
    assert all(month[page_of(row)] == count_of(row) for row in rows if page_of(row) in alone)


@pytest.mark.parametrize("name", ["visitors", "rollups"])
def test_every_value_is_read_there_as_it_was_written(engine, exported, answers, name):
    (table,) = (text for text in statements() if "hive.web.visitors (" in text)
    if name != "visitors":
        engine.ask(
            table.replace("hive.web.visitors", name).replace("s3://warehouse/visitors", f"file://{exported / name}")
        )
    names = list(rows_of(exported / name / "rows.parquet")[0])
    said = []
    for values in engine.ask(f"SELECT {', '.join(names)} FROM {name}"):
        row = dict(zip(names, values, strict=True))
        row["sketch"] = row["sketch"] and base64.b64decode(row["sketch"])
        row |= {column: instant(row[column]) for column in ("window_start", "window_end")}
        said.append(row)
    by_all = lambda row: str([row[column] for column in sorted(names)])  # noqa: E731 -- a key to sort by
    assert sorted(said, key=by_all) == sorted(rows_of(exported / name / "rows.parquet"), key=by_all)


def test_roll_ups_are_counted_there_as_here(engine, exported, answers):
    rows = [row for row in rows_of(exported / "rollups" / "rows.parquet") if row["sketch"]]
    assert engine.counts("of_rollups", [row["sketch"] for row in rows]) == [count_of(row) for row in rows]


def test_the_golden_file_is_what_this_engine_says(engine):
    assert make_presto_engine.asked(engine) == json.loads((ROOT / "tests/golden/presto-engine.json").read_text())


VALUES = "(SELECT a + 1000 * b AS x FROM UNNEST(sequence(0, 999)) s(a) CROSS JOIN UNNEST(sequence(0, 99)) t(b))"


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4, 8])
def test_private_sketches_that_the_engine_made_are_read_and_counted(engine, epsilon):
    """Six standard errors: one false alarm in 10^8."""
    made = f"noisy_approx_set_sfm(x, DOUBLE '{epsilon}', 4096, 24)"
    ((text, count),) = engine.ask(
        f"SELECT CAST(s AS VARBINARY), cardinality(s) FROM (SELECT {made} AS s FROM {VALUES})"
    )
    sketch = presto.decode(base64.b64decode(text))
    assert presto.encode(sketch) == base64.b64decode(text)
    assert presto.cardinality(sketch) == count
    found = estimate(sketch)
    assert abs(found.value - 100_000) < 6 * found.standard_error < 40_000
    raw = PcsaSketch(SHAPE).add(np.arange(100_000))
    flipped = np.bitwise_count(np.frombuffer(sketch.bits, np.uint8) ^ raw.bits).sum()
    p = sketch.flip_threshold / 2**64
    assert abs(flipped - SHAPE.cells * p) < 6 * np.sqrt(SHAPE.cells * p * (1 - p)), "the same cells, flipped with p"


ODD = 2_000


def test_counts_of_any_bitmap(engine):
    """Of bitmaps that no set makes a last digit of Java's pow decides; of those of sets, none differ."""
    rng = np.random.default_rng(7)
    blobs, ours, ordinary = [], [], []
    for number in range(2 * ODD):
        bits = int(rng.integers(4, 11))
        levels = int(rng.integers(8, 41))
        p = float(rng.choice([0.0, 1 / (1 + np.exp(rng.uniform(0.5, 9.0)))]))
        is_ordinary = number % 2 == 0
        if is_ordinary:  # up to where the last levels fill
            items = 10 ** rng.uniform(0, np.log10(2.0 ** (levels - 3 + bits)))
            chance = p + (1 - 2 * p) * -np.expm1(-items * 2.0 ** -(np.arange(levels) + 1) / 2**bits)
        else:
            chance = [rng.random(levels), np.full(levels, rng.random()), rng.choice([0, 1, p], levels)][number % 3]
        lit = (rng.random((levels, 1 << bits)) < chance[:, None]).reshape(-1)
        blobs.append(oracle.write(oracle.Blob(bits, levels, p, frozenset(np.flatnonzero(lit).tolist()))))
        packed = np.packbits(lit, bitorder="little")
        ours.append(presto.presto_cardinality(packed, SketchShape(1 << bits, levels), p))
        ordinary.append(is_ordinary)
    theirs = engine.counts("any_bitmap", blobs)
    differ = [is_ordinary for is_ordinary, a, b in zip(ordinary, ours, theirs, strict=True) if a != b]
    print(f"{len(differ) - sum(differ)} of {ODD} odd bitmaps differ")
    assert not any(differ)
    assert len(differ) <= ODD // 100


@pytest.mark.parametrize("row", BIAS, ids=lambda row: f"{row[0]} sketches")
@pytest.mark.parametrize("column", range(5))
def test_its_merge_counts_too_high_as_the_page_says(engine, row, column):
    """As test_presto_docs.py has it from the old formula; here the engine merges, eight times."""
    epsilon, count, rounds = bias_epsilon(column), int(row[0]), 8
    share = 50_000 // count
    sets = ", ".join(f"({n}, {n * share})" for n in range(count))
    made = f"noisy_approx_set_sfm(x + start, DOUBLE '{epsilon}', 4096, 24)"
    each = (
        f"SELECT round, n, {made} AS s FROM (VALUES {sets}) v(n, start) "
        f"CROSS JOIN UNNEST(sequence(1, {rounds})) r(round) CROSS JOIN {VALUES} WHERE x < 50000 GROUP BY round, n"
    )
    counts = [value for (value,) in engine.ask(f"SELECT cardinality(merge(s)) FROM ({each}) GROUP BY round")]
    ratios = [value / ((count - 1) * share + 50_000) for value in counts]
    assert len(ratios) == rounds
    require_as_said(ratios, row[1 + column])
