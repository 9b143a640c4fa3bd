"""docs/sql.md runs: its commands, and its queries in DuckDB, whose numbers are those of plain sets of the users.

So does examples/answers/report.py, on the same pipeline.
"""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from reference.naive_sets import items
from support.embedded_runs import here, run_here, write_config, write_events
from support.seeded_coins import SeededCoins

from sfm_stream.answers.export import COLUMNS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/sql.md").read_text("utf-8")
DAY_MS = 86_400_000
T0 = 1_780_272_000_000  # 2026-06-01
DAYS = 3
PAGES = {"/home": 400, "/news": 150, "/shop": 20}


def visits():
    for day in range(DAYS):
        for page, users in PAGES.items():
            for n in range(users + 100 * day):
                yield T0 + day * DAY_MS + n * 60_000, page, f"old {n}" if n % 2 else f"new {day} {n}"


def exact_set(pages, day):
    return items(visits(), pages, T0 + day * DAY_MS, T0 + (day + 1) * DAY_MS)


def exact(page, day):
    return len(exact_set([page], day))


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A pipeline that has run, and the two files of the page's commands."""
    folder = tmp_path_factory.mktemp("sql")
    write_events(folder / "in.jsonl", ({"page": page, "user": user, "at": at} for at, page, user in visits()))
    config = write_config(
        folder, size="1h", start="2026-06-01T00:00:00Z", end="end = 2026-06-04T00:00:00Z", epsilon=8, buckets=1024
    )
    config.write_text(config.read_text() + '[[spans]]\nsize = "day"\nepsilon = 8\n')
    run_here(config, SeededCoins(9))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (commands,) = blocks("sh")
        for line in commands.strip().splitlines():
            program, *arguments = shlex.split(line)
            assert program == "sfm-stream"
            done = here(*arguments)
            assert (done.returncode, done.stderr) == (0, ""), line
    return folder


@pytest.fixture(scope="module")
def answers(folder):
    """The rows of each query of the page, as dictionaries, in their order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        found = []
        for block in blocks("sql"):
            database = duckdb.connect()
            database.execute("SET TimeZone = 'UTC'")
            database.execute(block)
            names = [column[0] for column in database.description]
            found.append([dict(zip(names, row, strict=True)) for row in database.fetchall()])
        return found


def number_of(moment: datetime) -> int:
    return round(moment.astimezone(UTC).timestamp() * 1000 - T0) // DAY_MS


def test_the_days_of_each_page(answers):
    days = answers[0]
    assert len(days) == DAYS * len(PAGES)
    for row in days:
        true = exact(row["page"], number_of(row["day"]))
        assert row["low"] - (row["high"] - row["low"]) <= true <= row["high"] + (row["high"] - row["low"])


def test_the_largest_pages_with_their_ranks(answers):
    assert [(row["page"], row["rank_low"], row["rank_high"]) for row in answers[1]] == [
        ("/home", 1, 1),
        ("/news", 2, 2),
        ("/shop", 3, 3),
    ]


def test_a_day_less_the_day_before(answers):
    changes = answers[2]
    assert len(changes) == (DAYS - 1) * len(PAGES)
    for row in changes:
        day = number_of(row["day"])
        true, width = exact(row["page"], day) - exact(row["page"], day - 1), row["high"] - row["low"]
        assert row["low"] - width / 2 <= true <= row["high"] + width / 2
        assert row["sign"] == (1 if row["low"] > 0 else 0), "each page has 100 users more every day"


def test_releases_with_what_they_cost(answers):
    by_span = {row["span"]: row for row in answers[3]}
    assert by_span["day"]["releases"] == by_span["day"]["with_count"] == DAYS * len(PAGES)
    assert by_span["day"]["epsilon"] == pytest.approx(8 * DAYS * len(PAGES))
    assert by_span["1h"]["releases"] > by_span["day"]["releases"]


def test_the_python_of_the_page_runs(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (code,) = blocks("python")
    exec(compile(code, "sql.md", "exec"), {})  # noqa: S102 -- the page's own code
    shown = capsys.readouterr().out
    assert all(page in shown for page in PAGES)


def test_the_page_names_columns_that_are_written():
    first = re.findall(r"^\| (`[^|]+) \|", PAGE, re.M)
    assert {name for cell in first for name in re.findall(r"`(\w+)`", cell)} <= COLUMNS.keys()


def test_the_example_reports_a_day(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["report.py", str(folder / "app.toml"), "2026-06-02"])
    runpy.run_path(str(ROOT / "examples/answers/report.py"), run_name="__main__")
    head, *pages, together = capsys.readouterr().out.splitlines()
    assert head == "2026-06-02, views"
    found = [re.fullmatch(r" +(\d)\. (/\w+): (\d+) \(\d+ to \d+\), more than the day before", line) for line in pages]
    assert [(line[1], line[2]) for line in found] == [("1", "/home"), ("2", "/news"), ("3", "/shop")]
    for line in found:
        assert abs(int(line[3]) - exact(line[2], 1)) < 60
    assert abs(int(re.search(r"all of these: (\d+)", together)[1]) - len(exact_set(PAGES, 1))) < 80
