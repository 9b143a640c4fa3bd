"""What `sfm-stream export` is asked for is what `estimate` would be asked for; without an answer there is no table."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from support.embedded_runs import (
    START_MS,
    here,
    rollups,
)
from support.exported_tables import check_rows, documents, export, publish
from support.rollup_runs import release

from sfm_stream.units import SKETCHES
from sfm_stream.wire.keys import encode_key


@pytest.mark.parametrize(
    ("question", "count"),
    [
        (["--key", "p1"], 8),
        (["--key", "p1", "--key", "p2"], 16),
        (["--from", "2026-01-01T01:00"], 12),
        (["--to", "2026-01-01T02:00:00+01:00"], 12),
        (["--from", "2026-01-01T00:15", "--to", "2026-01-01 01:00", "--key", "p0"], 3),
        (["--key", '"p1"'], 8),
        (["--key", '["p1"]'], 8),
        ([], 24),
    ],
)
def test_the_question_means_what_it_means_to_estimate(app, question, count):
    def places(rows, start):
        return sorted((json.dumps(row["key"]), row[start]) for row in rows)

    asked = documents(here("estimate", app, "--by", "window", "--json", *question))
    for row in asked:
        row["from"] = round(datetime.fromisoformat(row["from"]).timestamp() * 1000)
    rows, done = export(app, *question)
    assert len(rows) == count
    assert places([row | {"key": json.loads(row["key"])} for row in rows], "window_start") == places(asked, "from")
    assert done.stderr == ""


@pytest.mark.parametrize("topic", ["sketches", "rollups"])
def test_of_a_question_without_an_answer_no_table_is_made(app, topic):
    done = here("export", app, "--topic", topic, "--key", "nobody", "--out", app.parent / "out.csv")
    assert (done.returncode, done.stdout) == (9, "")
    assert done.stderr == (
        "error: --key nobody: nothing is published for this key; there are others, such as p0, p1, p2\n"
    )
    assert not (app.parent / "out.csv").exists()
    assert not list(app.parent.glob(".*"))
    rows, done = export(app, "--topic", topic, "--key", "p1", "--key", "nobody")
    assert rows
    assert done.stderr.startswith("--key nobody: nothing is published for this key")


@pytest.mark.parametrize("topic", ["sketches", "rollups"])
def test_a_span_that_cuts_what_it_asks_for_is_refused(app, topic):
    question = ("--from", "2026-01-01 00:31", "--to", "2026-01-01 01:29")
    done = here("export", app, "--topic", topic, *question, "--out", app.parent / "out.csv")
    nearest = {
        "sketches": '--from "2026-01-01 00:30" --to "2026-01-01 01:30", or --from "2026-01-01 00:45"'
        ' --to "2026-01-01 01:15"',
        "rollups": '--from "2026-01-01 00:00" --to "2026-01-01 02:00"',
    }
    assert done.returncode == 2
    assert f"Ask for {nearest[topic]}\n" in done.stderr
    assert not (app.parent / "out.csv").exists()


def test_the_question_applies_to_rollups_too(app):
    rows, _ = export(app, "--topic", "rollups", "--key", "p2", "--from", "2026-01-01", "--to", "2026-01-01T01:00")
    assert [(row["grain"], row["window_start"]) for row in rows] == [
        *(("quarter", START_MS + n * 900_000) for n in range(4)),
        ("hour", START_MS),
    ]
    check_rows(rows, [r for r in rollups(app.parent / "out.sqlite") if r.key == encode_key("p2")][:5])


def test_only_this_pipeline_is_written(app):
    publish(app, SKETCHES, release(START_MS, "foreign", pipeline="other"))
    assert len(export(app)[0]) == 24
