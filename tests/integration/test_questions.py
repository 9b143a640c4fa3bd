"""Questions to pipelines that really ran, against exact sets of users; and the commands of docs/questions.md."""

from __future__ import annotations

import re
import shlex
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from support.embedded_runs import asked, here, require_near, run_here, write_config, write_events

from sfm_stream.answers.answer import answer
from sfm_stream.answers.question import parse_question
from sfm_stream.answers.release_terms import release_terms
from sfm_stream.answers.row_json import row_json
from sfm_stream.composition.published import published
from sfm_stream.config.config import load_config

DOCS = Path(__file__).resolve().parents[2] / "docs/questions.md"
ZONE = "Europe/Berlin"
HOUR_MS = 3_600_000
FIRST, BEHIND = date(2026, 3, 16), date(2026, 4, 6)
"""Three weeks from a Monday on, with a Sunday of 23 hours and the end of a month."""


def midnight(day: date) -> int:
    return round(datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(ZONE)).timestamp() * 1000)


def visits():
    """(time, page, user): of /home some new and some returning users in each hour, of /rare a few on some days."""
    for hour in range((midnight(BEHIND) - midnight(FIRST)) // HOUR_MS):
        at = midnight(FIRST) + hour * HOUR_MS
        for n in range(6):
            yield at + n * 600_000, "/home", f"new {hour} {n}" if n % 2 else f"old {hour % 50} {n}"
        if hour // 24 % 3 == 0 and hour % 24 == 5:
            yield from ((at + n, "/rare", f"rare {n}") for n in range(20))


def distinct(page: str, since: date, until: date) -> int:
    low, high = midnight(since), midnight(until)
    return len({user for at, where, user in visits() if where == page and low <= at < high})


@pytest.fixture(scope="module")
def app(tmp_path_factory) -> Path:
    """Hours, and days of Berlin from raw."""
    folder = tmp_path_factory.mktemp("weeks")
    write_events(folder / "in.jsonl", ({"page": page, "user": user, "at": at} for at, page, user in visits()))
    start, end = (datetime.fromtimestamp(midnight(day) / 1000, ZoneInfo("UTC")).isoformat() for day in (FIRST, BEHIND))
    settings = {"size": "1h", "zone": ZONE, "start": start, "end": f"end = {end}", "epsilon": 8, "buckets": 256}
    config = write_config(folder, **settings)
    config.write_text(config.read_text() + '[[spans]]\nsize = "day"\nepsilon = 8\n')
    run_here(config)
    return config


def test_weeks_count_the_users_of_their_days(app):
    rows = asked(app, "--by", "week", "--key", "/home")
    assert all((row["origin"], row["releases"], row["windows"]) == ("merged", {"day": 7}, 7) for row in rows)
    assert all((row["complete"], row["missing"], row["status"]) == (True, [], "ok") for row in rows)
    for number, row in enumerate(rows):
        monday = FIRST + timedelta(weeks=number)
        require_near(row, distinct("/home", monday, monday + timedelta(weeks=1)))


def test_months_at_the_ends_of_what_was_counted_are_lower_bounds(app):
    march, april = asked(app, "--by", "month", "--key", "/home")
    assert (march["from"], march["to"]) == ("2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z")
    assert (march["missing"], march["missing_ms"]) == (
        [{"from": "2026-02-28T23:00:00Z", "to": "2026-03-15T23:00:00Z"}],
        15 * 24 * HOUR_MS,
    )
    assert (april["missing"][0]["from"], april["missing"][0]["to"]) == ("2026-04-05T22:00:00Z", "2026-04-30T22:00:00Z")
    assert [(row["status"], row["high"], row["complete"]) for row in (march, april)] == [
        ("lower_bound", None, True),
        ("lower_bound", None, False),
    ]
    require_near(march, distinct("/home", FIRST, date(2026, 4, 1)))


def test_the_last_days_end_with_what_is_published(app):
    """The file ended long before it is asked."""
    (row,) = asked(app, "--last", "7d", "--key", "/home")
    assert (row["grain"], row["from"], row["to"]) == ("range", "2026-03-29T22:00:00Z", "2026-04-05T22:00:00Z")
    assert [{**row, "grain": "week"}] == asked(app, "--last", "1w", "--by", "week", "--key", "/home")
    assert len(asked(app, "--last", "3d", "--by", "day", "--key", "/home")) == 3
    assert len(asked(app, "--last", "30h", "--by", "window", "--key", "/home")) == 30
    (month,) = asked(app, "--last", "1mo", "--key", "/home")
    assert (month["from"], month["status"]) == ("2026-02-28T23:00:00Z", "lower_bound")
    require_near(row, distinct("/home", BEHIND - timedelta(days=7), BEHIND))


def test_a_key_of_some_days_has_gaps_that_are_known_to_be_empty(app):
    (row,) = asked(app, "--last", "1w", "--key", "/rare")
    assert (row["releases"], row["windows"], row["missing"], row["status"]) == ({"day": 2}, 7, [], "ok")
    require_near(row, 20)


def test_a_notebook_says_when_it_asks(app):
    config = load_config(app)
    question = parse_question(config, "range", ["/home"], last="2d", asked_ms=midnight(date(2026, 3, 31)) + 5)
    with published(config) as reader:
        (row,) = answer(reader, release_terms(config), question).rows
    assert row_json(row) == asked(app, "--from", "2026-03-29", "--to", "2026-03-31", "--key", "/home")[0]
    assert row.window.end_ms - row.window.start_ms == 47 * HOUR_MS, "the Sunday has 23 hours"
    assert dict(row.releases) == {"day": 2}


@pytest.mark.parametrize(
    ("question", "code", "says"),
    [
        (("--last", "7d", "--by", "week"), 2, "7d is not made of whole weeks: ask for weeks, 4w"),
        (("--last", "7d", "--from", "2026-03-16"), 2, "--last stands for --from and --to: give it alone"),
        (("--last", "soon"), 2, "'soon' is not a number of hours, days, weeks or months: 24h, 7d, 4w, 3mo"),
        (
            ("--by", "week", "--from", "2026-03-10"),
            2,
            'Ask for --from "2026-03-09 00:00", or --from "2026-03-16 00:00"',
        ),
        (("--last", "1h", "--key", "/rare"), 9, "--key /rare: nothing is published for it in this span"),
    ],
)
def test_what_cannot_be_answered_is_said_with_the_remedy(app, question, code, says):
    done = here("estimate", app, *question)
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr


def test_the_table_says_what_a_row_is_made_of(app):
    head, *lines = here("estimate", app, "--by", "week", "--key", "/home").stdout.splitlines()
    assert re.search(r"releases +origin +missing +status", head)
    assert all(re.search(r"7 x day of 7  merged  -  +ok$", line.rstrip()) for line in lines)
    (line,) = here("estimate", app, "--last", "1mo", "--key", "/home").stdout.splitlines()[1:]
    assert re.search(r"16 x day of 31  merged  15d  +lower_bound$", line.rstrip())


def test_the_page_says_what_there_is(app):
    """Its commands run, and its table of fields is that of a row."""
    page = DOCS.read_text("utf-8")
    (commands,) = re.findall(r"```sh\n(.*?)```", page, re.S)
    lines = commands.strip().splitlines()
    assert len(lines) == 7
    for line in lines:
        program, command, _, *arguments = shlex.split(line, comments=True)
        assert (program, command) == ("sfm-stream", "estimate")
        done = here("estimate", app, *arguments)
        assert done.returncode == 0, (line, done.stderr)
    documented = {name for row in re.findall(r"^\| (`[^|]+) \|", page, re.M) for name in re.findall(r"`(\w+)`", row)}
    (row,) = asked(app, "--last", "2h", "--key", "/home")
    assert set(row) - {"key", "grain", "from", "to"} <= documented
