"""What is asked, as texts: of the second of two, and as parameters of the API."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sfm_stream.answers.asked import Asked
from sfm_stream.errors import QuestionError

WEEK = Asked(["/home"], "range", last="7d", joined=True)


@pytest.mark.parametrize(
    ("second", "whole"),
    [
        (Asked(["/news"]), Asked(["/news"], "range", last="7d", joined=True)),
        (Asked(last="1d"), Asked(["/home"], "range", last="1d", joined=True)),
        (Asked(since="a", until="b", joined=False), Asked(["/home"], "range", "a", "b", joined=False)),
        (Asked(["/news"], "day", until="b"), Asked(["/news"], "day", until="b", joined=True)),
    ],
)
def test_the_second_of_two_has_what_it_does_not_give_from_the_first(second, whole):
    assert second.beside(WEEK) == whole


def test_the_second_of_two_gives_keys_or_a_span():
    with pytest.raises(QuestionError, match="nothing to compare with"):
        Asked(by="day", joined=False).beside(WEEK)


def test_parameters_are_those_of_the_api():
    asked = Asked(["/a", "/b"], "day", "2026-01-01", "2026-01-02", None, False)
    given = [("key", "/a"), ("key", "/b"), ("by", "day"), ("from", "2026-01-01"), ("to", "2026-01-02")]
    assert asked.parameters() == [*given, ("joined", "false")]
    assert WEEK.parameters("other_") == [
        ("other_key", "/home"),
        ("other_by", "range"),
        ("other_last", "7d"),
        ("other_joined", "true"),
    ]
    assert Asked().parameters() == []


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ({"keys": "/home"}, "keys"),
        ({"keys": [1]}, "keys"),
        ({"keys": [None]}, "keys"),
        ({"since": datetime(2026, 1, 1, tzinfo=UTC)}, "since"),
        ({"until": 5}, "until"),
        ({"last": 7}, "last"),
        ({"by": 1}, "by"),
    ],
)
def test_what_is_no_text_is_refused_by_its_name(parts, name):
    with pytest.raises(QuestionError, match=f"^{name}: expected ") as refused:
        Asked(**parts)
    assert refused.value.part == name
