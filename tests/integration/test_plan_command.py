"""`sfm-stream plan` as it is called: tables, JSON, a picture, a configuration, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
from support.embedded_runs import here, write_config
from support.patience import PATIENCE_S

from sfm_stream.config.config import load_config

ASKED = ("--ask", "hour", "200", "5000", "--ask", "day", "2000", "50000", "--ask", "7d", "9000", "200000")
PLANNED = ("plan", *ASKED, "--budget", "4", "--active", "4")


def planned(*more: str | Path) -> str:
    done = here(*PLANNED, *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_tables_show_spans_answers_and_costs():
    said = planned("--events", "100000000", "--keys", "50")
    rows = {line.split()[0]: line.split() for line in said.splitlines() if line.strip()}
    assert rows["released"][:2] == ["released", "epsilon"]
    (answers,) = (part for part in said.split("\n\n") if part.startswith("asked"))
    assert [line.split("  ")[0] for line in answers.splitlines()[1:]] == ["hour", "day", "7 x days"]
    assert answers.count(" ok") == 3
    assert "a person who is active in 4 windows of the shortest span pays 4." in said
    assert "50 keys: " in said
    assert "A restart reads up to 1d of input again, 500s of CPU time" in said
    assert said.rstrip().endswith('path = "planned.sqlite"')


def test_json_has_what_the_tables_show_and_the_configuration():
    document = json.loads(planned("--json", "--selection", "0.05", "1e-9"))
    assert [part["span"] for part in document["spans"]] == ["hour", "day"]
    assert [(answer["span"], answer["times"], answer["releases"]) for answer in document["answers"]] == [
        ("hour", 1, 1),
        ("day", 1, 1),
        ("day", 7, 7),
    ]
    assert sum(Decimal(part["epsilon_of_person"]) for part in document["spans"]) <= 4
    assert document["spans"][0]["selected_half"] > 100
    assert document["replay_cpu_s"] is None
    settings = tomllib.loads(document["configuration"], parse_float=Decimal)
    assert settings["privacy"]["max_epsilon_per_item_day"] == Decimal(document["epsilon_a_day"])
    assert settings["privacy"]["epsilon_selection"] == Decimal("0.05")
    assert settings["spans"][0]["epsilon"] == Decimal(document["spans"][1]["epsilon"])
    assert settings["spans"][0]["count_share"] == Decimal(document["spans"][1]["count_share"])


def test_the_configuration_alone_is_what_json_holds():
    assert planned("--toml") == json.loads(planned("--json"))["configuration"]


@pytest.mark.parametrize(
    ("asked", "more"),
    [
        ((("15m", 200, 5_000),), ()),
        ((("5m", 20, 500), ("day", 900, 9_000)), ("--selection", "0.3", "1e-9", "--zone", "Europe/Berlin")),
        ((("hour", 200, 5_000), ("day", 2_000, 50_000), ("7d", 9_000, 200_000)), ()),
        ((("day", 2_000, 50_000), ("week", 9_000, 90_000), ("month", 9_000, 200_000)), ("--reread", "month")),
        ((("15m", 20, 500), ("hour", 70, 900), ("day", 2_000, 50_000)), ("--zone", "America/St_Johns")),
    ],
)
def test_the_configuration_is_accepted_and_judged_as_it_was_planned(tmp_path, asked, more):
    questions = [str(word) for each in asked for word in ("--ask", *each)]
    call = ("plan", *questions, "--budget", "100", "--active", "3", *more)
    (tmp_path / "app.toml").write_text(here(*call, "--toml").stdout, "utf-8")
    (tmp_path / "events.jsonl").write_text('{"page": "/", "user": 1, "at": 1767225600000}\n', "utf-8")
    checked = here("check", tmp_path / "app.toml")
    assert checked.returncode == 0, checked.stderr
    assert "1 records looked at: ok 1" in checked.stdout
    planned_as = json.loads(here(*call, "--json").stdout)
    del planned_as["configuration"]
    judged = json.loads(here("plan", "--config", tmp_path / "app.toml", *questions, "--active", "3", "--json").stdout)
    assert judged == planned_as
    budget = load_config(tmp_path / "app.toml").budget
    assert budget.epsilon_per_day == Decimal(judged["epsilon_a_day"])
    assert budget.delta_per_day == Decimal(judged["delta_a_day"])


def test_a_configuration_is_judged_by_itself(tmp_path):
    config = write_config(tmp_path, size="15m", epsilon=2, buckets=4096, levels=24)
    document = json.loads(here("plan", "--config", config, "--json").stdout)
    assert [(a["span"], a["from"], a["releases"], a["verdict"]) for a in document["answers"]] == [
        ("15m", "15m", 1, "ok"),
        ("hour", "15m", 4, "ok"),
        ("day", "15m", 96, "noise"),
    ]
    assert "configuration" not in document
    assert (document["epsilon_a_day"], document["epsilon_of_person"]) == ("192", "192")
    asked = here("plan", "--config", config, "--ask", "hour", "200", "4000", "--active", "5")
    assert "5 x 2 = 10" in asked.stdout
    assert "large keys only" in asked.stdout
    assert "[pipeline]" not in asked.stdout


@pytest.mark.parametrize(
    "option", [("--budget", "1"), ("--zone", "UTC"), ("--toml",), ("--shape", "64", "16"), ("--reread", "day")]
)
def test_a_configuration_leaves_no_choice(tmp_path, option):
    done = here("plan", "--config", write_config(tmp_path), *option)
    assert done.returncode == 2
    assert f"{option[0]}: not with --config" in done.stderr


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_a_picture_is_drawn_where_it_is_asked_for(tmp_path, ending):
    picture = tmp_path / f"errors{ending}"
    planned("--plot", picture)
    begins = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[ending]
    assert picture.read_bytes().startswith(begins)
    assert picture.stat().st_size > 5_000


def test_a_picture_without_matplotlib_names_the_extra(tmp_path):
    program = (
        "import sys; sys.modules['matplotlib'] = None; from sfm_stream.cli.main import main; "
        f"sys.argv = {['sfm-stream', *PLANNED, '--plot', str(tmp_path / 'p.png')]}; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2
    assert done.stderr == (
        "error: --plot needs matplotlib, which is not installed: pip install 'sfm-stream[plot]', or leave --plot out\n"
    )
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--budget", "1"), "--ask and --budget are needed"),
        (ASKED, "--ask and --budget are needed"),
        ((*ASKED, "--budget", "0"), "'0' is no number above 0"),
        ((*ASKED, "--budget", "much"), "'much' is no number above 0"),
        ((*ASKED, "--budget", "nan"), "'nan' is no number above 0"),
        ((*ASKED, "--budget", "1", "--zone", "Mars/Base"), "'Mars/Base' is not an IANA time zone name"),
        ((*ASKED, "--budget", "1", "--shape", "1000", "24"), "1000 is not a power of two"),
        ((*ASKED, "--budget", "1", "--selection", "1", "2"), "DELTA: 2 is outside"),
        ((*ASKED, "--budget", "0.0001"), "buys nothing"),
        (("--ask", "year", "1", "2", "--budget", "1"), "'year' is no span that can be asked for"),
        (("--ask", "day", "20", "2", "--budget", "1"), "the large one larger"),
        (("--ask", "day", "0", "2", "--budget", "1"), "0 is not in the range x>=1"),
        ((*ASKED, "--budget", "1", "--plot", "picture.doc"), "the ending of picture.doc says what is written"),
        ((*ASKED, "--budget", "1", "--plot", "no/where.png"), "--plot: no/where.png: No such file or directory"),
    ],
)
def test_what_makes_no_plan_is_refused_with_the_reason(arguments, says):
    done = here("plan", *arguments)
    assert done.returncode in (2, 3)
    assert says in " ".join(done.stderr.split())
    assert done.stdout == ""
