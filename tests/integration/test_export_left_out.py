"""Records that `sfm-stream export` leaves out, and rows that it warns of."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.embedded_runs import (
    HOUR_MS,
    MINUTE_MS,
    START_MS,
    here,
    releases,
    rollups,
    run_here,
    write_config,
    write_events,
)
from support.exported_tables import check_rows, documents, export, publish
from support.rollup_runs import release

from sfm_stream.sketch.sfm import GRID
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.codec import encode


def test_identical_copies_are_written_once(app):
    output = app.parent / "out.sqlite"
    publish(app, SKETCHES, *(encode(record) for record in releases(output)[:3]), encode(releases(output)[0]))
    rows, done = export(app)
    check_rows(rows, releases(output)[:24])
    assert "4 identical copies left out" in done.stdout
    assert done.stderr == ""
    assert json.loads(export(app, "--json", "--force")[1].stdout)["duplicates"] == 4


def test_of_two_payloads_the_first_is_written_and_the_incident_is_code_6(app):
    output = app.parent / "out.sqlite"
    first = releases(output)[:2]
    forged = [replace(r, sketch=replace(r.sketch, bits=bytes(len(r.sketch.bits)))) for r in first]
    publish(app, SKETCHES, *map(encode, forged), encode(forged[0]), encode(first[1]))
    rows, done = export(app, code=6)
    check_rows(rows, releases(output)[:24])
    assert "2 releases have a second, different payload" in done.stderr
    assert "privacy incident" in done.stderr
    assert all(record.release_id.hex() in done.stderr for record in first)
    assert "1 identical copies" in done.stdout
    done = here("export", app, "--out", app.parent / "other.csv", "--json")
    assert done.returncode == 6
    assert json.loads(done.stdout)["conflicts"] == 2
    rows, _ = export(app, "--key", "p2", "--force")
    assert len(rows) == 8, "no incident among the records asked for"


def test_the_newest_revision_of_a_rollup_is_written_wherever_it_stands(tmp_path):
    events = [{"page": "p", "user": f"u{n}", "at": START_MS + n * MINUTE_MS} for n in range(120)]
    app = write_config(tmp_path, complete="false")
    for part in (70, 120):
        write_events(tmp_path / "in.jsonl", events[:part])
        run_here(app)
    everything = rollups(tmp_path / "out.sqlite")
    newest = {}
    for record in everything:
        newest[record.window] = max(newest.get(record.window, record), record, key=lambda r: r.revision)
    assert len(newest) < len(everything), "a day was published twice"
    publish(app, ROLLUPS, encode(everything[0]), *(encode(r) for r in everything if r not in newest.values()))
    rows, done = export(app, "--topic", "rollups")
    check_rows(sorted(rows, key=place), sorted(newest.values(), key=lambda r: (r.window.end_ms, r.window.start_ms)))
    old = 2 * (len(everything) - len(newest))
    assert f"{old} older revisions left out" in done.stdout
    assert "1 identical copies left out" in done.stdout
    shown = documents(here("estimate", app, "--by", "day", "--json"))
    assert [row["estimate"] for row in rows if row["grain"] == "day"] == [row["estimate"] for row in shown]


def place(row):
    return row["window_end"], row["window_start"]


@pytest.mark.parametrize("out", ["out.parquet", "out.csv"])
def test_a_merge_that_is_pure_noise_has_a_row_and_no_sketch(app, out):
    record = rollups(app.parent / "out.sqlite")[0]
    noise = replace(
        record, merged=replace(record.merged, flip_threshold=GRID // 2), revision=record.revision + 1, high=float("inf")
    )
    publish(app, ROLLUPS, encode(noise))
    rows, done = export(app, "--topic", "rollups", out=out)
    check_rows(rows, [*rollups(app.parent / "out.sqlite")[1:33], noise])
    assert rows[-1]["sketch"] is None
    assert rows[-1]["flip_probability"] == 0.5
    assert rows[-1]["high"] is None
    assert "1 rows without a sketch: they are pure noise" in done.stdout
    assert json.loads(export(app, "--topic", "rollups", "--force", "--json")[1].stdout)["without_sketch"] == 1


def test_a_hash_that_presto_does_not_have_is_warned_of(app):
    publish(app, SKETCHES, release(START_MS + HOUR_MS, "keyed", hash="blake2b:0123456789abcdef"))
    for options in ([], ["--json", "--force"]):
        rows, done = export(app, *options)
        assert rows[-1]["hash"] == "blake2b:0123456789abcdef"
        assert done.stderr.startswith("warning: ")
        assert "blake2b:0123456789abcdef" in done.stderr
        assert "wrong count" in done.stderr
    assert json.loads(done.stdout)["hashes"] == ["blake2b:0123456789abcdef", "xxh64"]
    assert export(app, "--key", "p1", "--force")[1].stderr == ""
