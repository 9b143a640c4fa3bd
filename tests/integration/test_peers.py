"""The comparison with other programs: a smoke run of its command, who is called wrong, and the tables of its page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.patience import PATIENCE_S

from benchmarks.peers import checks, cli, report
from benchmarks.peers.data_sets import QUICK, DataSet, truth
from benchmarks.peers.pages import between, write_between
from benchmarks.peers.programs.page_events import MINUTE_MS, events, key, partition_of, value
from benchmarks.peers.results import Result, Results
from benchmarks.peers.rows import Row
from sfm_stream.events.partitioner import PARTITIONERS

ROOT = Path(__file__).resolve().parents[2]
DATA = DataSet(pages=4, windows=2, window_events=50)


# The command


def test_a_smoke_run(kafka, tmp_path):
    """By hand, a loop over a file and sfm-stream on some thousand events, all with the right answers."""
    names = ["by-hand-kafka-python", "file-loop", "sfm-python", "sfm-python-files"]
    call = [sys.executable, "-m", "benchmarks.peers", "--quick", "--rows", ",".join(names), "--out", str(tmp_path)]
    env = os.environ | {"KAFKA_BOOTSTRAP": kafka}
    done = subprocess.run(call, cwd=ROOT, env=env, capture_output=True, text=True, timeout=4 * PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads((tmp_path / "peers.json").read_text())
    assert [row["name"] for row in said["rows"]] == names
    assert all(row["right"] and row["repetitions"] == 1 and row["rss_mb"] > 10 for row in said["rows"])
    releases = QUICK.pages * QUICK.windows
    by_hand = QUICK.pages * QUICK.short_windows
    assert said["rows"][0]["said"] == f"{by_hand} of {by_hand} exact"
    assert said["rows"][2]["said"].startswith(f"{releases} of {releases} releases")
    assert (tmp_path / "peers.md").read_text() == report.page_section(said)


# The data


def test_the_exact_answers_are_those_of_the_events():
    users: dict[tuple[str, int], set[str]] = {}
    for event in events(DATA.pages, DATA.windows, DATA.window_events, DATA.start_ms):
        read = json.loads(value(*event))
        users.setdefault((read["page"], read["ts"] // MINUTE_MS * MINUTE_MS), set()).add(read["user"])
    closing = DATA.start_ms + (DATA.windows + 5) * MINUTE_MS
    assert {place: len(found) for place, found in users.items() if place[1] < closing} == truth(DATA).windows
    assert {place[0] for place in users if place[1] == closing} == set(truth(DATA).hours)
    assert sum(1 for _ in events(DATA.pages, DATA.windows, DATA.window_events, DATA.start_ms)) == DATA.total


def test_events_lie_in_their_minute():
    found = list(events(DATA.pages, DATA.windows, DATA.window_events, 0))[: -DATA.pages]
    assert [at_ms // MINUTE_MS for _, _, at_ms, _ in found] == [0] * 50 + [1] * 50


def test_pages_go_where_the_java_producer_sends_them():
    partition = PARTITIONERS["murmur2"]
    for page in range(200):
        assert partition_of(page, 7) == partition(key(page), 7)


# Who is called wrong


def answers() -> list[dict[str, object]]:
    return [{"page": page, "start": start, "n": n} for (page, start), n in truth(DATA).windows.items()]


def test_exact_answers_are_right():
    closing = {"page": "/page/0000", "start": 0, "n": 1}
    assert checks.judge_exact(truth(DATA).windows, [*answers(), closing]) == checks.Checked(True, "8 of 8 exact")


@pytest.mark.parametrize("sketched", [False, True])
@pytest.mark.parametrize("fault", ["missing", "twice", "off"])
def test_wrong_answers_are_found(fault, sketched):
    given = answers()
    off = {**given[0], "n": int(given[0]["n"]) * 2}
    given = {"missing": given[1:], "twice": [*given, given[0]], "off": [off, *given[1:]]}[fault]
    assert not checks.judge_exact(truth(DATA).windows, given, sketched).right


def test_a_sketch_may_be_off_a_little():
    given = [{"page": "a", "start": 0, "n": 1_050}]
    assert checks.judge_exact({("a", 0): 1_000}, given, sketched=True).right
    assert not checks.judge_exact({("a", 0): 1_000}, given).right


def noisy(scale: float = 1.0, shift: float = 0.0) -> list[tuple[int, float]]:
    return list(enumerate((np.random.default_rng(1).normal(0, scale, 10_000) + shift).tolist()))


def test_noise_of_the_right_size_is_right():
    assert checks.judge_noisy("releases", range(10_000), noisy()).right


@pytest.mark.parametrize(
    "found",
    [noisy()[1:], [*noisy(), (0, 0.0)], [*noisy()[1:], (1, 0.0)], noisy(scale=1.3), noisy(scale=0.7), noisy(shift=0.4)],
    ids=["missing", "twice", "one for another", "too noisy", "not noisy enough", "biased"],
)
def test_noise_of_another_size_and_lost_releases_are_found(found):
    assert not checks.judge_noisy("releases", range(10_000), found).right


# What is made of runs


def result(row: str, size: str, number: int, cpu_s: float, **other: object) -> Result:
    fields = {"count": 1000 if size == "large" else 100, "wall_s": cpu_s, "rate": 0.0, "right": True, "said": "all"}
    return Result(row, size, number, cpu_s=cpu_s, system_s=0, rss_mb=50, at="", **fields | other)  # type: ignore[arg-type]


def test_rates_are_of_medians_and_steady_is_the_slope():
    row = Row("a", "A", lambda *_: None, DATA, DATA, (1, 1))
    runs = [result("a", "small", n, cpu) for n, cpu in enumerate((1.0, 1.5, 1.2, 9.0))]
    runs += [result("a", "large", n, cpu) for n, cpu in enumerate((4.0, 4.2, 9.0))]
    found = report.figures(row, runs)
    assert (found.repetitions, found.counts, found.small_cpu_s) == (3, (100, 1000), (1.0, 1.5, 1.2))
    assert found.whole == pytest.approx(1000 / 4.2)
    assert found.steady == pytest.approx(900 / (4.2 - 1.2))
    assert found.steady_range == pytest.approx((900 / 7.8, 900 / 2.7))
    assert found.wall_s_a_million == pytest.approx((4.2 - 1.2) * 1e6 / 900)


def test_one_wrong_run_makes_a_row_wrong():
    row = Row("a", "A", lambda *_: None, DATA, DATA, (1, 1))
    runs = [result("a", "small", 0, 1, right=False, said="half"), result("a", "large", 0, 2)]
    found = report.figures(row, runs)
    assert (found.right, found.said) == (False, "half")


def said(**steady: float) -> dict[str, object]:
    rows = [
        {"name": name.replace("_", "-"), "steady": rate, "rate": rate, "wall_s_a_million": rate, "repetitions": 3}
        for name, rate in steady.items()
    ]
    return {"about": {}, "rows": rows, "missing": {}}


def test_targets_are_told_apart():
    found = said(
        streams=10.0,
        sfm_python=30.0,
        sfm_native=50.0,
        sfm_native_ingest=1000,
        sfm_native_single=300,
    )
    found["rows"] += [  # type: ignore[operator]
        {"name": "sfm-python-restart", "steady": 1e6, "wall_s_a_million": 5, "rate": 0},
        {"name": "sfm-native-restart", "steady": 1e6 / 1.4, "wall_s_a_million": 0.001, "rate": 0},
    ]
    table = report.targets_table(found).splitlines()
    assert table[2].endswith("| 5.00 / >= 6 **missed** | 3.00 / >= 2.5 |")
    assert table[7].endswith("| 0.30 / >= 0.25 | not measured / 0.2 |")
    assert table[11].endswith("| 1.40 / <= 1.5 | 5.00 / <= 4 **missed** |"), "less than it works, on one core"
    assert len(table) == 2 + len(report.TARGETS)


def test_a_release_costs_what_its_events_take_more_than_without_it():
    found = said(sfm_python=1 / 8e-6, sfm_python_ingest=1 / 5e-6)
    assert report.measured(found, "release", "python") == pytest.approx(300)


def test_runs_are_kept_and_wrong_ones_are_run_again(tmp_path):
    kept = Results(tmp_path / "runs.jsonl")
    kept.add(result("a", "small", 0, 1.0))
    kept.add(result("a", "small", 0, 2.0))
    kept.add(result("b", "small", 0, 2.0, right=False))
    again = Results(tmp_path / "runs.jsonl")
    assert [run.cpu_s for run in again.all] == [2.0, 2.0]
    assert (again.has("a", "small", 0), again.has("a", "small", 1), again.has("b", "small", 0)) == (True, False, False)


def test_what_was_run_is_not_run_again(tmp_path):
    kept = Results(tmp_path / "runs.jsonl")
    a, b = (Row(name, name, lambda *_: None, small, DATA, (1, 1)) for name, small in (("a", DATA), ("b", None)))
    kept.add(result("a", "small", 0, 1.0))
    kept.add(result("b", "large", 1, 1.0))
    left = [(row.name, size, number) for row, size, number in cli.todo([a, b], kept, 2, again=False)]
    assert left == [("a", "large", 0), ("b", "large", 0), ("a", "small", 1), ("a", "large", 1)]
    assert len(cli.todo([a, b], kept, 2, again=True)) == 6


# The page


def test_a_section_is_put_between_its_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- peers: by x -->\nold\n<!-- end of peers -->\nafter\n")
    write_between(page, "peers", r"new \1" + "\n")
    assert page.read_text() == "before\n<!-- peers: by x -->\nnew \\1\n<!-- end of peers -->\nafter\n"
    with pytest.raises(LookupError):
        between(page.read_text(), "curves")
