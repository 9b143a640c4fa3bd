"""Questions of one span: a key has one row, whoever released it; ranks say what may be withheld."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.memory_topics import Topics
from support.published_topics import VIEWS, closed, question, rolled, sketched, span

from sfm_stream.answers.compared import compare
from sfm_stream.answers.one_span import one_span, one_span_rows
from sfm_stream.answers.top_keys import top_keys
from sfm_stream.errors import NothingFound, QuestionError
from sfm_stream.pipeline.rollup.coverage import Absence
from sfm_stream.wire.codec import decode_rollup, encode
from sfm_stream.wire.keys import encode_key

TWO = {"partitions": 2}


def test_two_partitions_of_a_key_are_one_row():
    first = [*(sketched(n, "a", **TWO) for n in range(4)), sketched(0, "b", 30, **TWO), closed(0, 4, **TWO)]
    second = [sketched(n, "a", 55, partition=1, **TWO) for n in range(4)] + [closed(0, 4, partition=1, **TWO)]
    of_a = next(record for record in map(decode_rollup, rolled(first)) if record.key == encode_key("a"))
    topics = Topics([*first, *second], [*rolled(first), encode(replace(of_a, partition=1))])
    asked = one_span(topics, VIEWS, question("hour", span(0, 4)))
    rows = list(one_span_rows(topics, VIEWS, asked))
    assert [(row.key, row.released, row.grain) for row in rows] == [(("a",), 8, "range"), (("b",), 1, "range")]
    by_range = list(one_span_rows(topics, VIEWS, replace(asked, grain="range")))
    assert rows == by_range
    assert [row.row.key for row in top_keys(topics, VIEWS, asked, 5)] == [("a",), ("b",)]


def test_what_may_be_withheld_stands_beside_ranks():
    records = [sketched(0, "a"), sketched(0, "b", 60), closed(0, 1)]
    asked = question("range", span(0, 1))
    assert [row.others_withheld for row in top_keys(Topics(records), VIEWS, asked, 5)] == [True, True]
    public = replace(VIEWS, absence=Absence(1))
    assert [row.others_withheld for row in top_keys(Topics(records), public, asked, 5)] == [False, False]
    named = question("range", span(0, 1), {encode_key("a")})
    assert [row.others_withheld for row in top_keys(Topics(records), VIEWS, named, 5)] == [False]


@pytest.mark.parametrize(("grain", "low", "high"), [("hour", 0, 8), ("hour", 1, 5), ("day", 0, 4)])
def test_a_span_of_several_or_of_a_part_is_refused(grain, low, high):
    with pytest.raises(QuestionError, match=f"--by {grain} asks for several spans"):
        one_span(Topics([closed(0, 8)]), VIEWS, question(grain, span(low, high)))


def test_a_span_without_an_end_is_refused():
    with pytest.raises(QuestionError, match="the span has no end"):
        one_span(Topics([]), VIEWS, question("range"))


def test_a_comparison_has_a_row_where_one_side_has_one():
    records = [sketched(0, "a"), closed(0, 2)]
    first, second = (question("range", span(n, n + 1)) for n in (0, 1))
    for sides in ((first, second), (second, first)):
        (row,) = compare(Topics(records), VIEWS, *sides)
        assert (row.key, row.difference.value, row.change) == (("a",), None, None)
    with pytest.raises(NothingFound):
        compare(Topics(records), VIEWS, second, second)
