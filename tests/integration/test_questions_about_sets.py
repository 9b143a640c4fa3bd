"""Unions, pairs, comparisons and ranks of a pipeline that really ran, against plain sets of its users."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from reference.naive_sets import items
from support.embedded_runs import asked, here, require_near, run_here, write_config, write_events
from support.seeded_coins import SeededCoins

from sfm_stream.answers.answer import answer
from sfm_stream.answers.compared import compare
from sfm_stream.answers.compared_json import compared_json
from sfm_stream.answers.completeness import completeness
from sfm_stream.answers.completeness_json import completeness_json
from sfm_stream.answers.known_keys import known_keys
from sfm_stream.answers.known_keys_json import keys_json
from sfm_stream.answers.pair_json import pair_json
from sfm_stream.answers.pairs import answer_pair
from sfm_stream.answers.question import parse_question
from sfm_stream.answers.ranked_json import ranked_json
from sfm_stream.answers.release_terms import release_terms
from sfm_stream.answers.top_keys import top_keys
from sfm_stream.composition.published import published
from sfm_stream.config.config import load_config
from sfm_stream.errors import NothingFound, QuestionError
from sfm_stream.estimation.estimate import Status

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
T0 = 1_780_272_000_000  # 2026-06-01, a Monday
DAYS = 3
PAGES = {"/home": 900, "/news": 500, "/shop": 120, "/shop/cart": 118, "/empty on the first day": 40}
"""Users of each page in a day; half of them are also users of the page before, and half of them come again."""


def visits():
    for day in range(DAYS):
        for place, (page, users) in enumerate(PAGES.items()):
            if day == 0 and page.startswith("/empty"):
                continue
            for n in range(users):
                user = f"again {n}" if n % 2 else f"day {day} page {place} {n}"
                yield T0 + day * DAY_MS + n * (DAY_MS // users), page, user


def exact(keys, first_day, days=1):
    return items(visits(), keys, T0 + first_day * DAY_MS, T0 + (first_day + days) * DAY_MS)


def day(number, days=1):
    return f"2026-06-{1 + number:02}", f"2026-06-{1 + number + days:02}"


@pytest.fixture(scope="module")
def app(tmp_path_factory) -> Path:
    """Hours, and days from raw."""
    folder = tmp_path_factory.mktemp("sets")
    write_events(folder / "in.jsonl", ({"page": page, "user": user, "at": at} for at, page, user in visits()))
    config = write_config(
        folder,
        size="1h",
        start=f"{day(0)[0]}T00:00:00Z",
        end=f"end = {day(DAYS)[0]}T00:00:00Z",
        epsilon=8,
        buckets=1024,
    )
    config.write_text(config.read_text() + '[[spans]]\nsize = "day"\nepsilon = 8\n')
    run_here(config, SeededCoins(15))
    return config


@pytest.fixture(scope="module")
def ask(app):
    """(reader, terms, a function that makes a question)."""
    config = load_config(app)
    with published(config) as reader:
        yield reader, release_terms(config), lambda *keys, **other: parse_question(config, "range", keys, **other)


def near(estimate, true, slack=6):
    """Six standard errors: 2e-9 two-sided."""
    return abs(estimate.value - true) <= slack * max(estimate.standard_error, 1)


# several keys as one


def test_keys_are_joined_in_every_span(app):
    for days in (1, 3):
        since, until = day(0, days)
        options = "--key", "/home", "--key", "/news", "--from", since, "--to", until, "--joined"
        (row,) = asked(app, *options)
        require_near(row, len(exact(["/home", "/news"], 0, days)))
        assert (row["key"], row["keys"]) == ([], [["/home"], ["/news"]])
        assert (row["origin"], row["releases"], row["windows"]) == ("merged", {"day": 2 * days}, 2 * days)
        assert (row["status"], row["missing"], row["complete"]) == ("ok", [], True)


@pytest.mark.parametrize(("grain", "rows", "of_each"), [("day", 3, {"day": 2}), ("week", 1, {"day": 6})])
def test_there_is_a_row_for_each_span(app, grain, rows, of_each):
    found = asked(app, "--key", "/home", "--key", "/news", "--joined", "--by", grain)
    assert [row["releases"] for row in found] == [of_each] * rows
    for number, row in enumerate(found):
        require_near(row, len(exact(["/home", "/news"], number, 1 if grain == "day" else DAYS)))


def test_by_window_only_base_windows_are_joined(app):
    found = asked(app, "--key", "/home", "--key", "/shop", "--joined", "--by", "window")
    assert [row["releases"] for row in found] == [{"1h": 2}] * 24 * DAYS
    starts = {row["from"] for row in found}
    assert len(starts) == 24 * DAYS
    assert asked(app, "--key", "/home", "--key", "/shop", "--joined", "--by", "hour") == [
        {**row, "grain": "hour"} for row in found
    ]


def test_all_keys_are_one_set_too(app):
    (row,) = asked(app, "--joined", "--last", "3d")
    require_near(row, len(exact(PAGES, 0, DAYS)))
    assert len(row["keys"]) == len(PAGES)
    assert (row["status"], row["missing"]) == ("ok", []), "a key without a release had nothing: presence is public"


def test_where_keys_may_be_withheld_all_of_them_are_a_lower_bound(ask):
    reader, terms, question = ask
    (row,) = answer(reader, replace(terms, absence=type(terms.absence)()), question(last="3d", joined=True)).rows
    assert (row.estimate.status, row.missing) == (Status.LOWER_BOUND, (row.window,))


def test_one_joined_key_is_that_key(app):
    options = "--key", "/home", "--last", "1d"
    (joined,), (alone,) = asked(app, *options, "--joined"), asked(app, *options)
    assert {**joined, "key": alone["key"], "keys": []} == alone
    assert alone["origin"] == "raw"


def test_the_table_names_the_keys(app):
    says = here("estimate", app, "--joined", "--last", "1d").stdout
    assert "/home + /news + /shop + 2 more" in says


# two sets


def test_what_two_keys_share(ask):
    reader, terms, question = ask
    since, until = day(1)
    first, second = (question(key, since=since, until=until) for key in ("/home", "/news"))
    pair = answer_pair(reader, terms, first, second)
    one, other = exact(["/home"], 1), exact(["/news"], 1)
    assert near(pair.parts.both, len(one & other))
    assert near(pair.parts.only_first, len(one - other))
    assert near(pair.parts.only_second, len(other - one))
    assert near(pair.parts.either, len(one | other))
    assert [row.key for row in (pair.first, pair.second)] == [("/home",), ("/news",)]
    shown = pair_json(pair)
    assert shown["both"]["estimate"] == pair.parts.both.value
    assert json.loads(json.dumps(shown)) == shown


def test_what_two_spans_share_and_what_two_unions_do(ask):
    reader, terms, question = ask
    first, second = (question("/home", since=day(n)[0], until=day(n)[1]) for n in (0, 1))
    pair = answer_pair(reader, terms, first, second)
    one, other = exact(["/home"], 0), exact(["/home"], 1)
    assert near(pair.parts.both, len(one & other))
    assert near(pair.parts.only_second, len(other - one))
    unions = answer_pair(
        reader,
        terms,
        question("/home", "/news", since=day(0)[0], until=day(1)[0], joined=True),
        question("/shop", since=day(1)[0], until=day(3)[0]),
    )
    one, other = exact(["/home", "/news"], 0), exact(["/shop"], 1, 2)
    assert near(unions.parts.both, len(one & other))
    assert near(unions.parts.either, len(one | other))
    assert unions.parts.epsilon < pair.parts.epsilon, "the merge of several has more noise"
    assert (unions.first.keys, dict(unions.second.releases)) == ((("/home",), ("/news",)), {"day": 2})


def test_a_release_in_both_sets_is_refused(ask):
    reader, terms, question = ask
    first = question("/home", since=day(0)[0], until=day(2)[0])
    with pytest.raises(QuestionError, match="have 1 release in common, and so the same noise"):
        answer_pair(reader, terms, first, question("/home", since=day(1)[0], until=day(3)[0]))
    hours = question("/home", since=f"{day(0)[0]}T12:00Z", until=f"{day(1)[0]}T12:00Z")
    pair = answer_pair(reader, terms, question("/home", since=day(0)[0], until=day(1)[0]), hours)
    assert dict(pair.second.releases) == {"1h": 24}, "other releases of the same hours have noise of their own"


@pytest.mark.parametrize(
    ("keys", "joined", "says"),
    [((), False, "one key on each side"), (("/home", "/news"), False, "one key on each side")],
)
def test_a_side_is_one_set(ask, keys, joined, says):
    reader, terms, question = ask
    with pytest.raises(QuestionError, match=says):
        answer_pair(reader, terms, question(*keys, last="1d", joined=joined), question("/home", last="1d"))


def test_a_set_that_lacks_releases_limits_its_parts_on_one_side(ask):
    reader, terms, question = ask
    withheld = replace(terms, absence=type(terms.absence)())
    lacking = question("/empty on the first day", since=day(0)[0], until=day(2)[0])
    pair = answer_pair(reader, withheld, question("/home", last="1d"), lacking)
    assert pair.second.estimate.status is pair.parts.both.status is pair.parts.either.status is Status.LOWER_BOUND
    assert pair.parts.only_second.status is Status.LOWER_BOUND
    assert (pair.parts.only_first.low, pair.parts.only_first.high < math.inf) == (0, True)


# side by side


def test_two_spans_are_compared_key_by_key(ask):
    reader, terms, question = ask
    first, second = (question(since=day(n)[0], until=day(n)[1]) for n in (0, 2))
    rows = compare(reader, terms, first, second)
    assert [row.key[0] for row in rows] == sorted(PAGES, key=lambda key: (len(key), key))
    for row in rows:
        (key,) = row.key
        true = len(exact([key], 2)) - len(exact([key], 0))
        if key.startswith("/empty"):
            assert row.first is None
            assert (row.difference.value, row.difference.low, row.change) == (None, -math.inf, None)
            assert row.difference.high == row.second.estimate.high
        else:
            assert row.difference.low - 40 <= true <= row.difference.high + 40
            assert row.change == row.difference.value / row.first.estimate.value
    assert all(json.loads(json.dumps(compared_json(row))) for row in rows)


def test_two_keys_are_compared(ask):
    reader, terms, question = ask
    (row,) = compare(reader, terms, question("/news", last="1d"), question("/home", last="1d"))
    assert (row.first.key, row.second.key, row.difference.sign) == (("/news",), ("/home",), 1)
    assert near(row.difference, len(exact(["/home"], 2)) - len(exact(["/news"], 2)))
    (same,) = compare(reader, terms, question("/news", last="1d"), question("/news", last="1d"))
    assert (same.difference.value, same.difference.sign, same.change) == (0, None, 0)


# ranks


def test_the_top_keys_with_the_ranks_that_are_open(ask):
    reader, terms, question = ask
    rows = top_keys(reader, terms, question(last="1d"), 4)
    assert [row.row.key[0] for row in rows[:2]] == ["/home", "/news"]
    assert {row.row.key[0] for row in rows[2:]} == {"/shop", "/shop/cart"}
    assert [(row.rank_low, row.rank_high) for row in rows] == [(1, 1), (2, 2), (3, 4), (3, 4)]
    assert [row.tied for row in rows] == [False, False, True, True]
    assert {(row.published, row.others_withheld) for row in rows} == {(5, False)}
    assert ranked_json(rows[2])["rank_high"] == 4


@pytest.mark.parametrize("question_of", [top_keys])
def test_one_span_is_asked_about(app, ask, question_of):
    reader, terms, _ = ask
    config = load_config(app)
    for grain, other in (("day", {}), ("hour", {"since": day(0)[0], "until": day(1)[0]}), ("window", {"last": "2h"})):
        with pytest.raises(QuestionError, match="--last"):
            question_of(reader, terms, parse_question(config, grain, **other), 3)
    one_day = parse_question(config, "day", since=day(1)[0], until=day(2)[0])
    by_day = question_of(reader, terms, one_day, 2)
    assert [row.row.grain for row in by_day] == ["day", "day"]


# what there is


def test_the_keys_that_are_published(ask):
    reader, terms, _ = ask
    whole = known_keys(reader, terms)
    assert [key for (key,) in whole.keys] == sorted(PAGES, key=lambda key: (len(key), key))
    assert not whole.more
    pages, after = [], None
    while True:
        page = known_keys(reader, terms, after=after, limit=2)
        pages += page.keys
        if not page.more:
            break
        after = page.keys[-1]
    assert tuple(pages) == whole.keys
    assert known_keys(reader, terms, search="SHOP").keys == (("/shop",), ("/shop/cart",))
    assert known_keys(reader, terms, search="nothing").keys == ()
    assert keys_json(known_keys(reader, terms, limit=1)) == {
        "keys": [{"key": ["/home"], "text": "/home"}],
        "more": True,
    }
    with pytest.raises(QuestionError, match="at least one"):
        known_keys(reader, terms, limit=0)


def test_how_far_it_has_come(ask):
    reader, terms, _ = ask
    found = completeness(reader, terms)
    assert (found.through_ms, found.open, found.partitions) == (T0 + DAYS * DAY_MS, (), 1)
    assert [(span.name, span.last.end_ms - span.last.start_ms) for span in found.spans] == [
        ("1h", HOUR_MS),
        ("day", DAY_MS),
    ]
    assert completeness_json(found)["spans"][1]["last"] == {
        "from": "2026-06-03T00:00:00Z",
        "to": "2026-06-04T00:00:00Z",
    }
    with pytest.raises(NothingFound):
        completeness(reader, replace(terms, pipeline="other"))
