"""The paper's experiments: a quick run, runs that are killed and extended, and the page that shows a full one."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.patience import until

from benchmarks.paper import claims, document, runner
from benchmarks.paper.cells import PRIVATE, SYM, Cell, Plan
from benchmarks.paper.figures import FIGURES, make_plan
from benchmarks.paper.summary import Row, efficiency, read_csv, summarise, write_csv
from benchmarks.paper.tables import TABLES
from benchmarks.paper.theory import STATED, merged_epsilon, relative_errors

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTED = {name: read_csv(document.FOLDER / f"{name}.csv") for name in FIGURES}


def paper(*arguments: object, **options) -> subprocess.Popen:
    command = [sys.executable, "-m", "benchmarks.paper", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def finished(process: subprocess.Popen) -> str:
    """Standard output of a run that went well and said nothing on standard error."""
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert err == ""
    return out


# The command


def test_a_quick_run_of_everything(tmp_path):
    """Files of every figure, and SFM (sym) as theory has it: a false alarm once in 10,000 runs of other seeds."""
    out = finished(paper("all", "--quick", "--out", tmp_path, "--processes", 2))
    for name in FIGURES:
        rows = read_csv(tmp_path / f"{name}.csv")
        assert [row.cell for row in rows] == list(make_plan(name, True).cells)
        assert all(math.isfinite(row.rrmse) and row.trials == 30 for row in rows)
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / f"{name}.md").read_text() == TABLES[name](rows)
        assert f"{name}: 30 trials, data: synthetic" in out
    known = claims.known_values(read_csv(tmp_path / "figure2.csv"))
    assert len(known) == len(STATED), claims.report(known)
    assert all(claim.held for claim in known), claims.report(known)
    verdicts = re.findall(r"^\[(?:held|DID NOT HOLD)\] ", out, re.M)
    assert len(verdicts) == len(re.findall(r"^\| figure \d", (tmp_path / "claims.md").read_text(), re.M)) > 20
    # A method that is broken outright is off by far more than this.
    errors = {row.method: row.rrmse for row in read_csv(tmp_path / "figure4.csv") if row.epsilon == 1.0}
    assert errors[PRIVATE[0]] < 2 * errors[PRIVATE[1]]
    assert errors[PRIVATE[1]] < errors[PRIVATE[2]] < errors[PRIVATE[3]]


def test_the_addresses_of_a_file(tmp_path):
    (tmp_path / "heist.csv").write_text("address,year\n" + "".join(f"1{i % 3000:x},2011\n" for i in range(5000)))
    arguments = ["figure4", "--quick", "--trials", 3, "--csv", tmp_path / "heist.csv", "--out", tmp_path / "out"]
    assert "data: heist.csv " in finished(paper(*arguments, "--processes", 1))
    rows = read_csv(tmp_path / "out" / "figure4.csv")
    assert {row.n for row in rows} == {3000}
    assert all(row.data.startswith("heist.csv ") for row in rows)


def test_a_killed_run_goes_on_and_gives_what_an_undisturbed_one_gives(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    arguments = ["figure1", "--quick", "--trials", 25, "--out"]
    finished(paper(*arguments, whole, "--processes", 1))
    process = paper(*arguments, killed, "--processes", 2, start_new_session=True)
    until(lambda: len(shards(killed)) >= 2)
    process.kill()
    process.communicate()
    until(lambda: not alive(process.pid))
    there = len(shards(killed))
    assert 2 <= there < 5
    assert not (killed / "figure1.csv").exists()
    finished(paper(*arguments, killed, "--processes", 2))
    assert (killed / "figure1.csv").read_bytes() == (whole / "figure1.csv").read_bytes()


def shards(folder: Path) -> list[Path]:
    return list(folder.glob("trials/*/*.json"))


def alive(group: int) -> bool:
    """Whether a process of the group runs; one that has ended and that nobody waited for does not count."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, owner = path.read_text().rpartition(")")[2].split()[:3]
            if int(owner) == group and state not in "ZX":
                return True
    return False


# The runner


class Here(Executor):
    """Runs a job where it is submitted, and counts them."""

    jobs = 0

    def submit(self, job, /, *arguments, **options):
        self.jobs += 1
        future: Future = Future()
        future.set_result(job(*arguments, **options))
        return future


TINY = Plan("figure1", tuple(Cell(method, n, 1.0) for n in (50, 5000) for method in PRIVATE))


def test_more_trials_add_to_those_there_are(tmp_path):
    pool = Here()
    first = runner.measure(TINY, 7, tmp_path / "a", pool)
    assert first.shape == (7, 8)
    assert pool.jobs == 2
    told: list[int] = []
    second = runner.measure(TINY, 12, tmp_path / "a", pool, told=told.append)
    # Trials 0 to 4 are there; 5 and 6 are done again with their chunk.
    assert pool.jobs == 4
    assert sum(told) == 12
    assert np.array_equal(second[:7], first)
    assert np.array_equal(second, runner.measure(TINY, 12, tmp_path / "b", Here()))
    assert np.array_equal(runner.measure(TINY, 6, tmp_path / "a", pool), first[:6])
    assert pool.jobs == 4


def test_trials_are_not_repeats(tmp_path):
    found = runner.measure(TINY, 10, tmp_path, Here())
    # At n = 50 the estimate is often 0.
    assert all(np.unique(column).size == 10 for column in found.T[4:])


def test_damaged_and_foreign_files_are_measured_again(tmp_path):
    right = runner.measure(TINY, 10, tmp_path, Here())
    first, second = sorted(shards(tmp_path))
    first.write_text(first.read_text()[:100])
    second.write_text(second.read_text().replace("n=5000", "n=5001"))
    pool = Here()
    assert np.array_equal(runner.measure(TINY, 10, tmp_path, pool), right)
    assert pool.jobs == 2


def test_other_plans_have_other_folders(tmp_path):
    plans = [TINY, replace(TINY, data="else"), replace(TINY, cells=TINY.cells[1:]), replace(TINY, figure="figure2")]
    assert len({plan.fingerprint() for plan in plans}) == 4


# The numbers


def test_errors_of_errors():
    """RRMSE, bias and Monte-Carlo error of normal estimates: sigma / sqrt(2 m) of the RRMSE."""
    rng = np.random.default_rng(1)
    plan = Plan("figure1", (Cell(SYM, 1000, 1.0), Cell("PS (loose)", 1000, 1.0)))
    rows = summarise(plan, 1000 * (1 + rng.normal(0, (0.03, 0.3), (4000, 2))))
    assert [row.rrmse for row in rows] == pytest.approx([0.03, 0.3], rel=0.05)
    assert [row.rrmse_error / row.rrmse for row in rows] == pytest.approx([8000**-0.5] * 2, rel=0.1)
    assert rows[1].efficiency == pytest.approx(100, rel=0.1)
    repeats = [efficiency(*np.square(rng.normal(0, ((0.3,), (0.03,)), (2, 400)))) for _ in range(400)]
    assert np.mean([error for _, error in repeats]) == pytest.approx(np.std([ratio for ratio, _ in repeats]), rel=0.15)


def test_a_csv_is_read_as_it_was_written(tmp_path):
    rows = DOCUMENTED["figure2"]
    write_csv(rows, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text() == (document.FOLDER / "figure2.csv").read_text()


def test_theory_is_what_was_worked_out_apart_from_it():
    for epsilon, stated in STATED.items():
        for n in (100_000, 1_000_000):
            paper_error, sandwich = relative_errors(Cell(SYM, n, epsilon))
            assert paper_error == pytest.approx(stated, abs=6e-5)
            assert sandwich == pytest.approx(stated, rel=0.05)


def test_merging_k_sketches_is_merging_them_one_after_another():
    epsilon = 2.0
    for k in range(2, 9):
        a, b = epsilon, 2.0
        epsilon = -math.log(math.exp(-a) + math.exp(-b) - math.exp(-a - b))
        assert merged_epsilon(2.0, k) == pytest.approx(epsilon, rel=1e-12)


# The claims


def verdicts(figures: dict[str, list[Row]]) -> list[bool]:
    return [claim.held for claim in claims.check(figures)]


def test_known_values_find_an_estimator_that_is_off():
    rows = DOCUMENTED["figure2"]
    assert all(claim.held for claim in claims.known_values(rows))
    for factor in (0.85, 1.2):
        off = [replace(row, rrmse=factor * row.rrmse) for row in rows]
        assert not any(claim.held for claim in claims.known_values(off))


@pytest.mark.parametrize("name", FIGURES)
def test_claims_can_fail(name):
    """With errors that have nothing to do with the paper most verdicts are against it."""
    rng = np.random.default_rng(7)
    rows = [
        replace(row, rrmse=x, efficiency=x if row.method == SYM else 1 / x, rrmse_error=x / 100, efficiency_error=0.0)
        for row, x in zip(DOCUMENTED[name], np.exp(rng.normal(0, 2, len(DOCUMENTED[name]))), strict=True)
    ]
    assert sum(verdicts({name: rows})) <= 1


# The page


def test_the_page_shows_the_tables_of_its_files():
    page = document.PAGE.read_text()
    assert document.fill(page, document.FOLDER) == page
    shown = re.findall(r"<!-- table: (\w+) -->", page)
    assert sorted(shown) == sorted([*FIGURES, "claims", "readings"])


@pytest.mark.parametrize("name", FIGURES)
def test_the_page_shows_a_full_run_of_every_figure(name):
    page = document.PAGE.read_text()
    assert f"](paper/{name}.png)" in page
    assert f"](paper/{name}.csv)" in page
    assert [row.cell for row in DOCUMENTED[name]] == list(make_plan(name, False).cells)
    assert {row.trials for row in DOCUMENTED[name]} == {1000}
    assert (document.FOLDER / f"{name}.png").stat().st_size <= 60_000


def test_what_did_not_hold_is_on_the_page():
    failed = [claim for claim in claims.check(DOCUMENTED) if not claim.held]
    page = document.PAGE.read_text()
    assert failed
    assert page.count("**did not hold**") >= len(failed)
