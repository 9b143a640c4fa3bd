"""Questions and answers as a user sees them: which span is answered for, what an answer is worth, and how it looks."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.embedded_runs import (
    HOUR_MS,
    MINUTE_MS,
    START_MS,
    command,
    here,
    payloads,
    rollups,
    run_here,
    write_config,
    write_events,
)
from support.patience import PATIENCE_S

from sfm_stream.answers.answer import answer
from sfm_stream.answers.question import parse_question
from sfm_stream.answers.release_terms import release_terms
from sfm_stream.answers.row_json import row_json
from sfm_stream.composition.published import published
from sfm_stream.config.config import load_config
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Record, Step
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.codec import decode

KEYS = ["/x/[/y]", "/post/[id]", ":smile:", "[bold]b", "\x1b[31mred", "a\u202eb", "a\nok", 0, "0", "", "(all)"]
SELECTED = {"keys": "selected", "privacy": "epsilon_selection = 1\ndelta_selection = 1e-9"}


def made(folder: Path, events, **settings) -> Path:
    write_events(folder / "in.jsonl", events)
    config = write_config(folder, **settings)
    run_here(config)
    return config


def hours_of(page="p", hours=4, users=60):
    """In each quarter of each hour so many users."""
    return ({"page": page, "user": n, "at": START_MS + n * 15 * MINUTE_MS // users} for n in range(4 * hours * users))


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """Four hours of one page, days of Berlin: counting begins at 01:00 there."""
    return made(tmp_path_factory.mktemp("app"), hours_of(), zone="Europe/Berlin")


def documents(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


# Which span


def test_a_span_that_cuts_windows_is_refused_with_the_two_nearest(app):
    done = here("estimate", app, "--from", "2026-01-01 02:31", "--to", "2026-01-01 03:29")
    assert (done.returncode, done.stdout) == (2, "")
    assert "2026-01-01 02:31 and 2026-01-01 03:29 (Europe/Berlin) is inside a window of 15m" in done.stderr
    outer, inner = re.findall(r'--from "([^"]*)" --to "([^"]*)"', done.stderr)
    assert (outer, inner) == (("2026-01-01 02:30", "2026-01-01 03:30"), ("2026-01-01 02:45", "2026-01-01 03:15"))
    for (since, until), windows in ((outer, 4), (inner, 2)):
        (row,) = documents(here("estimate", app, "--from", since, "--to", until, "--json"))
        assert (row["windows"], row["released"], row["status"]) == (windows, windows, "ok")


@pytest.mark.parametrize(
    ("question", "nearest"),
    [
        (
            ["--from", "2026-01-01 02:31", "--by", "window"],
            'Ask for --from "2026-01-01 02:30", or --from "2026-01-01 02:45"',
        ),
        (["--to", "2026-01-01 02:31", "--by", "window"], 'Ask for --to "2026-01-01 02:45", or --to "2026-01-01 02:30"'),
        (
            ["--from", "2026-01-01 02:15", "--by", "hour"],
            'Ask for --from "2026-01-01 02:00", or --from "2026-01-01 03:00"',
        ),
        (
            ["--from", "2026-01-01 02:00", "--by", "day"],
            'Ask for --from "2026-01-01 00:00", or --from "2026-01-02 00:00"',
        ),
        (
            ["--from", "2026-01-01 02:15", "--to", "2026-01-01 02:45", "--by", "hour"],
            'Ask for --from "2026-01-01 02:00" --to "2026-01-01 03:00"\n',
        ),
        (
            ["--from", "2026-01-01 02:31", "--to", "2026-01-01 02:40"],
            'Ask for --from "2026-01-01 02:30" --to "2026-01-01 02:45"\n',
        ),
    ],
)
def test_every_border_has_to_be_one_of_what_is_asked_for(app, question, nearest):
    done = here("estimate", app, *question)
    assert done.returncode == 2
    assert nearest in done.stderr


def test_a_shown_time_can_be_pasted_back(app):
    table = here("estimate", app, "--by", "hour").stdout.splitlines()
    assert "from (Europe/Berlin)" in table[0]
    first = re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d", table[1])
    (row,) = documents(here("estimate", app, "--from", first[0], "--to", first[1], "--json"))
    assert (row["from"], row["to"], row["released"]) == ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", 4)
    with_offset = ("--from", "2026-01-01T00:00Z", "--to", "2026-01-01T02:00+01:00")
    assert documents(here("estimate", app, *with_offset, "--json")) == [row]


def test_a_date_is_where_its_day_begins(app):
    (row,) = documents(here("estimate", app, "--from", "2026-01-01", "--by", "day", "--json"))
    assert row["from"] == "2025-12-31T23:00:00Z"


@pytest.mark.parametrize(
    ("time", "says"),
    [
        ("2026-10-25 02:30", "comes twice in Europe/Berlin.*2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00"),
        ("2026-03-29 02:30", "does not come.*2026-03-29T03:30:00+02:00 or 2026-03-29T01:30:00+01:00"),
        ("1969-12-31", "before 1970"),
        ("2026-01-01T00:00:00.0001", "finer than a millisecond"),
        ("yesterday", "is not a time"),
    ],
)
def test_times_that_cannot_be_meant_are_refused(app, time, says):
    done = here("estimate", app, "--from", time, "--by", "window")
    assert done.returncode == 2, done.stderr
    assert re.search(says.replace("+", r"\+"), done.stderr), done.stderr


def test_the_hour_that_comes_twice_is_shown_with_its_offset(tmp_path):
    start_ms = 1_792_886_400_000  # 2026-10-25T00:00Z, 02:00 in Berlin for the first time
    events = ({"page": "p", "user": n, "at": start_ms + n * 15_000} for n in range(480))
    config = made(tmp_path, events, zone="Europe/Berlin", start="2026-10-25T00:00:00Z")
    shown = here("estimate", config, "--by", "hour").stdout
    for since, until in (
        ("2026-10-25 02:00+02:00", "2026-10-25 02:00+01:00"),
        ("2026-10-25 02:00+01:00", "2026-10-25 03:00"),
    ):
        assert f"{since}  {until}" in shown
        (row,) = documents(here("estimate", config, "--from", since, "--to", until, "--json"))
        assert (row["windows"], row["status"]) == (4, "ok")


def test_a_notebook_asks_the_same_question(app):
    config = load_config(app)
    question = parse_question(config, "hour", keys=["p"], since="2026-01-01 02:00")
    with published(config) as reader:
        rows = answer(reader, release_terms(config), question).rows
    shown = documents(here("estimate", app, "--by", "hour", "--key", "p", "--from", "2026-01-01 02:00", "--json"))
    assert [row_json(row) for row in rows] == shown
    assert len(shown) == 3


# Nothing to answer


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (["--key", "nobody"], "--key nobody: nothing is published for this key; there are others, such as p"),
        (["--key", "p", "--from", "2027-01-01"], "lies between 2026-01-01 01:00 and 2026-01-01 05:00 (Europe/Berlin)"),
        (
            ["--from", "2027-01-01", "--to", "2027-01-02"],
            "what there is lies between 2026-01-01 01:00 and 2026-01-01 05:00",
        ),
    ],
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_question_without_an_answer_says_why_and_has_its_own_code(app, question, says, form):
    done = here("estimate", app, *question, *form)
    assert (done.returncode, done.stdout) == (9, "")
    assert says in done.stderr
    assert done.stderr.startswith("error: ")


def test_one_of_two_keys_is_answered_and_the_other_named(app):
    done = here("estimate", app, "--key", "p", "--key", "nobody", "--json")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr.startswith("--key nobody: nothing is published for this key")


def test_before_anything_is_published(tmp_path):
    config = made(tmp_path, [])
    done = here("estimate", config)
    assert done.returncode == 9
    assert "pipeline views has published nothing yet" in done.stderr
    config = made(tmp_path, hours_of(hours=1), complete="false", zone='UTC"\ndeadline = "36500d')
    done = here("estimate", config)
    assert done.returncode == 9
    assert "no days are published yet, only windows: ask --by window" in done.stderr
    assert here("estimate", config, "--by", "window").returncode == 0


def test_a_pipeline_of_one_key_takes_no_other(tmp_path):
    config = made(tmp_path, hours_of(hours=1), key="[]")
    done = here("estimate", config, "--key", "p")
    assert done.returncode == 2
    assert "event.key is []: everything is counted under one key" in done.stderr
    for shown in ("(all)", "[]"):
        (row,) = documents(here("estimate", config, "--key", shown, "--json"))
        assert row["key"] == []
    assert here("estimate", config).stdout.splitlines()[1].startswith("(all)  ")


# What it looks like


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    events = ({"page": key, "user": n, "at": START_MS} for n in range(40) for key in KEYS)
    return made(tmp_path_factory.mktemp("hostile"), events)


def test_keys_are_shown_as_text_and_never_as_markup(hostile):
    done = here("estimate", hostile, "--by", "window")
    assert (done.returncode, done.stderr) == (0, "")
    shown = [line.split("  ")[0] for line in done.stdout.splitlines()[1:]]
    assert sorted(shown) == sorted(
        [
            *("/x/[/y]", "/post/[id]", ":smile:", "[bold]b", '"\\u001b[31mred"', '"a\\u202eb"', '"a\\nok"'),
            *("0", '"0"', '""', '"(all)"'),
        ]
    )
    inspected = here("inspect", hostile.parent / "out.sqlite").stdout
    assert all(f"  {key}  " in inspected for key in shown)
    for text in (done.stdout, inspected):
        assert all(line.isprintable() for line in text.splitlines())
    rows = documents(here("estimate", hostile, "--by", "window", "--json"))
    assert sorted(map(repr, (row["key"][0] for row in rows))) == sorted(map(repr, KEYS)), "JSON stays exact"


def test_a_shown_key_is_taken_back(hostile):
    for line in here("estimate", hostile, "--by", "window").stdout.splitlines()[1:]:
        shown = line.split("  ")[0]
        rows = documents(here("estimate", hostile, "--by", "window", "--key", shown, "--json"))
        assert len(rows) == (2 if shown == "0" else 1), "a bare number is looked for as text too"


def test_fields_of_a_key_cannot_be_taken_for_one_another(tmp_path):
    pairs = [("a", "1 / x"), ("a / 1", "x"), ("a,b", "c")]
    events = ({"page": a, "site": b, "user": n, "at": START_MS} for n in range(40) for a, b in pairs)
    config = made(tmp_path, events, key='["page", "site"]')
    shown = [line.split("  ")[0] for line in here("estimate", config, "--by", "window").stdout.splitlines()[1:]]
    assert sorted(shown) == sorted(['a / "1 / x"', '"a / 1" / x', "a,b / c"])
    for key, asked in [*zip(pairs, ['a / "1 / x"', '"a / 1" / x', "a,b / c"], strict=True), (pairs[2], '["a,b", "c"]')]:
        (row,) = documents(here("estimate", config, "--by", "window", "--key", asked, "--json"))
        assert tuple(row["key"]) == key


def test_what_an_argument_holds_is_shown_too(app):
    for arguments in (["--key", "a\x1b[2J\u202e"], ["--from", "a\x1b[2J\u202e"]):
        done = here("estimate", app, *arguments)
        assert done.returncode in (2, 9)
        assert "\\u001b[2J\\u202e" in done.stderr
        assert all(line.isprintable() for line in done.stderr.splitlines())


@pytest.mark.parametrize(
    "question", [(), ("--by", "hour"), ("--by", "window"), ("--from", "2026-01-01 01:00", "--to", "2026-01-01 03:00")]
)
def test_a_row_fits_into_eighty_columns_of_a_terminal(app, question):
    code = "from rich.console import Console\nimport sys, sfm_stream.cli.screen as screen\n"
    code += "screen.console = lambda: Console(width=80, force_terminal=True, no_color=True, highlight=False)\n"
    code += "from sfm_stream.cli.main import main\nmain()"
    call = [sys.executable, "-c", code, "estimate", str(app), *question]
    done = subprocess.run(call, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in done.stdout.splitlines()]
    rows = [line for line in lines if line.startswith("p ")]
    count = {(): 1, ("--by", "hour"): 4, ("--by", "window"): 16}.get(question, 1)
    assert len(rows) == count
    assert all(re.search(r"(ok|lower_bound|lower_bound, open)$", line) for line in rows)
    assert all(len(line) <= 80 for line in lines)
    assert "Europe/Berlin" in "".join(lines)


# What it is worth


@pytest.fixture(scope="module")
def withheld(tmp_path_factory):
    """Of an hour two quarters have 60 users and two have three, which selection withholds (once in 5e7 times not)."""
    events = (
        {"page": "p", "user": f"{quarter} {n}", "at": START_MS + quarter * 15 * MINUTE_MS}
        for quarter in range(4)
        for n in range(60 if quarter % 2 else 3)
    )
    return made(tmp_path_factory.mktemp("withheld"), events, **SELECTED)


HOUR = ("--from", "2026-01-01", "--to", "2026-01-01 01:00")


@pytest.mark.parametrize("question", [HOUR, ("--by", "hour")])
def test_a_union_with_withheld_windows_is_a_lower_bound_in_every_output(withheld, question):
    (row,) = documents(here("estimate", withheld, *question, "--json"))
    assert (row["status"], row["high"], row["complete"]) == ("lower_bound", None, True)
    assert (row["released"], row["windows"]) == (2, 4)
    assert 0 < row["low"] <= row["estimate"]
    line = here("estimate", withheld, *question).stdout.splitlines()[1]
    assert re.search(r"2 x 15m of 4  merged  30m +lower_bound$", line.rstrip())
    assert "..inf" in line


def test_a_rollup_that_is_exported_is_a_lower_bound_too(withheld):
    out = withheld.parent / "out.csv"
    done = here("export", withheld, "--topic", "rollups", "--out", out)
    assert done.returncode == 0
    assert "2 lower bounds: windows are missing from them" in done.stdout
    with out.open() as table:
        every = list(csv.DictReader(table))
    assert {(row["grain"], row["origin"]) for row in every} == {
        ("quarter", "raw"),
        ("hour", "merged"),
        ("day", "merged"),
    }
    asked = documents(here("estimate", withheld, "--by", "quarter", "--json"))
    assert len(asked) == sum(row["grain"] == "quarter" for row in every) == 2, "what is passed on can be asked for"
    rows = [row for row in every if row["grain"] != "quarter"]
    assert all((row["status"], row["high"]) == ("lower_bound", "") for row in rows)
    inspected = here("inspect", withheld.parent / "out.sqlite", "--topic", "rollups").stdout
    assert "2 of 4 windows of span 15m, merged (2 empty or withheld), estimate " in inspected
    (hour,) = (r for r in rollups(withheld.parent / "out.sqlite") if r.grain == "hour")
    *_, shown, _ = documents(here("inspect", withheld.parent / "out.sqlite", "--topic", "rollups", "--json"))
    assert (shown["decided"], shown["released"], shown["status"]) == (4, 2, hour.status)
    assert (shown["low"], shown["high"]) == (hour.low, hour.high), "what is published stays as it is"


def test_with_public_presence_a_missing_release_is_an_empty_window(tmp_path):
    events = ({"page": "p", "user": n, "at": START_MS + n % 2 * 30 * MINUTE_MS} for n in range(120))
    config = made(tmp_path, [*events, {"page": "q", "user": 1, "at": START_MS + HOUR_MS}])
    for question in (HOUR, ("--by", "hour")):
        (row,) = documents(here("estimate", config, *question, "--key", "p", "--json"))
        assert (row["status"], row["released"], row["windows"]) == ("ok", 2, 4)
        assert row["high"] is not None


def test_with_declared_keys_no_window_is_missing(tmp_path):
    config = made(tmp_path, hours_of(hours=1), keys="declared", privacy='declared = ["p", "never"]')
    rows = documents(here("estimate", config, *HOUR, "--json"))
    assert {(row["key"][0], row["released"], row["windows"]) for row in rows} == {("p", 4, 4), ("never", 4, 4)}
    assert not [row for row in rows if row["status"] == "lower_bound"]


def test_of_another_epoch_the_rule_is_not_known(tmp_path):
    """Its records may be of a configuration that withheld keys."""
    events = [{"page": "p", "user": n, "at": START_MS} for n in range(60)]
    made(tmp_path, [*events, {"page": "q", "user": 1, "at": START_MS + HOUR_MS}])
    later = write_config(tmp_path, "later.toml", epoch=2, start="2026-01-01T02:00:00Z")
    for config, status in ((tmp_path / "app.toml", "ok"), (later, "lower_bound")):
        (row,) = documents(here("estimate", config, *HOUR, "--key", "p", "--json"))
        assert row["status"] == status


# Records that cannot be read


@pytest.mark.parametrize(("topic", "by"), [(SKETCHES, "window"), (ROLLUPS, "hour")])
def test_an_unknown_version_names_the_place_and_the_remedy(tmp_path, topic, by):
    config = made(tmp_path, hours_of(hours=1))
    output = tmp_path / "out.sqlite"
    first = payloads(output, topic)[0]
    at = first.index(b"\xcf" + bytes(7) + (b"\x02" if topic == SKETCHES else b"\x03"))
    newer = first[: at + 8] + b"\x04" + first[at + 9 :]
    log = SqliteLog(str(output))
    log.append("test", Step((Record(topic, 0, b"", newer, 0),), ()))
    log.close()
    assert decode(first)
    offset = len(payloads(output, topic)) - 1
    unknown = "version: 4 is unknown; this reader knows version 1, 2, 3; another"
    where = f"topic {topic}, partition 0, offset {offset}: {unknown}"
    for arguments in (
        ["estimate", config, "--by", by],
        ["inspect", output, "--topic", topic],
        ["inspect", config, "--topic", topic],
    ):
        done = here(*arguments)
        assert done.returncode == 1
        assert where in done.stderr
        assert "use that one, or a newer one" in done.stderr
        assert str(output) in done.stderr
    (tmp_path / "record.bin").write_bytes(newer)
    done = here("inspect", tmp_path / "record.bin")
    assert done.returncode == 1
    assert f"{tmp_path / 'record.bin'}: version: 4 is unknown" in done.stderr


def test_the_installed_command_ends_with_the_code(app):
    assert command("estimate", app, "--key", "nobody").returncode == 9
