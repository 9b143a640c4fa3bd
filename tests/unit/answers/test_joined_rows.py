"""Several keys as one set: shapes, epochs, partitions, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from support.memory_topics import Topics
from support.published_topics import K1, K4, SHAPE, VIEWS, closed, question, sketched, span

from sfm_stream.answers import joined_union
from sfm_stream.answers.answer import answer
from sfm_stream.answers.pairs import answer_pair
from sfm_stream.answers.rows import rows_of
from sfm_stream.errors import IncompatibleError, NothingFound, QuestionError
from sfm_stream.estimation.estimate import Status
from sfm_stream.estimation.mixed_union import estimate_union
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.wire.codec import decode_release
from sfm_stream.wire.keys import encode_key

A, B, NONE = (encode_key(key) for key in ("a", "b", "none"))
OTHER = SketchShape(128, 8)


def joined(low, high, keys=(A, B), grain="range"):
    return replace(question(grain, span(low, high), keys), joined=True)


def rows(records, *asked, **other):
    return list(rows_of(Topics(records), VIEWS, joined(*asked, **other)))


def test_keys_of_different_epsilons_are_bounded_together():
    """As windows of one key are: docs/accuracy.md, unions of several epsilons."""
    records = [sketched(0, "a", k=K4), sketched(0, "b", 50, k=K1), sketched(1, "b", 55, k=K1), closed(0, 2)]
    (row,) = rows(records, 0, 2)
    sketches = [decode_release(record).sketch for record in records[:3]]
    tallies = sorted([Tally.of(sketches[:1]), Tally.of(sketches[1:])], key=lambda tally: tally.flip_threshold)
    expected = estimate_union(tallies)
    assert (row.estimate.value, row.estimate.low) == (expected.value, expected.low)
    assert row.epsilon == pytest.approx(4 + 1 + 1)


def test_of_one_epoch_the_shape_answers_that_covers_most_of_all_keys():
    """Of b alone the hour covers most; with a it is the windows, and a quarter of b is missing."""
    names = {"spans": ("15m", "hour")}
    records = [
        *(sketched(n, "a", span="15m") for n in range(4)),
        *(sketched(n, "b", 50, span="15m") for n in range(3)),
        sketched(0, "b", 90, shape=OTHER, window_ms=3_600_000, span="hour"),
        *(closed(n, n + 1, span="15m", **names) for n in range(4)),
        closed(0, 4, window_ms=3_600_000, span="hour", **names),
    ]
    (alone,) = rows(records, 0, 4, keys=(B,))
    assert dict(alone.releases) == {"hour": 1}
    (row,) = rows(records, 0, 4)
    assert (dict(row.releases), row.missing) == ({"15m": 7}, (span(3, 4),))


def test_a_shape_of_another_epoch_is_not_left_out_quietly():
    records = [sketched(0, "a"), sketched(1, "b", shape=OTHER, epoch=2), closed(0, 1), closed(1, 2, epoch=2)]
    with pytest.raises(IncompatibleError, match="epochs 1 and 2 of pipeline views have sketches of different shape"):
        rows(records, 0, 2)
    (alone,) = rows(records, 0, 2, keys=(A,))
    assert alone.keys == (("a",),)


def test_partitions_of_all_keys_have_to_be_decided():
    of_two = {"partitions": 2}
    records = [sketched(0, "a", **of_two), sketched(0, "b", 50, partition=1, **of_two), closed(0, 2, **of_two)]
    (row,) = rows(records, 0, 2)
    assert not row.complete
    (row,) = rows([*records, closed(0, 2, partition=1, **of_two)], 0, 2)
    assert row.complete
    of_a, of_all = (rows(records, 0, 2, keys=keys)[0] for keys in ((A,), None))
    assert of_a.complete, "b is in the partition that is not decided"
    assert not of_all.complete
    (row,) = rows(records, 0, 2, keys=(A, NONE))
    assert not row.complete, "the key without a release may be in any partition"


def test_by_window_those_of_coarser_spans_have_no_row():
    names = {"spans": ("15m", "hour")}
    records = [
        *(sketched(n, key, 40 + ord(key), span="15m") for n in range(4) for key in "ab"),
        *(sketched(0, key, 90 + ord(key), window_ms=3_600_000, span="hour") for key in "ab"),
        *(closed(n, n + 1, span="15m", **names) for n in range(4)),
        closed(0, 4, window_ms=3_600_000, span="hour", **names),
    ]
    assert [dict(row.releases) for row in rows(records, 0, 4, grain="window")] == [{"15m": 2}] * 4
    assert [dict(row.releases) for row in rows(records, 0, 4, grain="hour")] == [{"hour": 2}]
    assert [dict(row.releases) for row in rows(records, 0, 4, grain="quarter")] == [{"15m": 2}] * 4


def test_more_releases_than_a_union_may_have_are_refused_before_they_are_read(monkeypatch):
    records = [sketched(n, key, 40 + ord(key)) for n in range(3) for key in "ab"] + [closed(0, 3)]
    monkeypatch.setattr(joined_union, "MAX_RELEASES", 6)
    assert rows(records, 0, 3)[0].released == 6
    monkeypatch.setattr(joined_union, "MAX_RELEASES", 5)
    monkeypatch.setattr(Topics, "at", None)
    with pytest.raises(QuestionError, match="have over 5 releases in one span"):
        rows(records, 0, 3)


def test_keys_without_any_release_are_named():
    records = [sketched(0, "a"), closed(0, 1)]
    found = answer(Topics(records), VIEWS, joined(0, 1, keys=(A, NONE)))
    assert [line.split(":")[0] for line in found.unanswered] == [f"--key {NONE.hex()}"]
    with pytest.raises(NothingFound):
        answer(Topics(records), VIEWS, joined(0, 1, keys=(NONE,)))


@pytest.mark.parametrize(
    ("first", "second", "only_first", "only_second"),
    [
        ((0, 1), (0, 1), (True, True), (True, True)),
        ((0, 2), (0, 1), (True, False), (False, True)),
        ((0, 1), (0, 2), (False, True), (True, False)),
        ((0, 2), (0, 2), (False, False), (False, False)),
    ],
)
def test_parts_of_sets_that_lack_releases_are_limited_on_one_side(first, second, only_first, only_second):
    """Of each part: whether it has a limit below, and one above; a set of two windows lacks one of them here."""
    records = [sketched(0, "a", 300), sketched(0, "b", 40), closed(0, 2)]
    parts = answer_pair(
        Topics(records), VIEWS, question("range", span(*first), [A]), question("range", span(*second), [B])
    ).parts
    whole = first == second == (0, 1)
    for part, (is_bounded_below, is_bounded_above) in (
        (parts.only_first, only_first),
        (parts.only_second, only_second),
    ):
        assert math.isfinite(part.high) == is_bounded_above
        assert is_bounded_below or part.low == 0
    for part in (parts.both, parts.either):
        assert math.isfinite(part.high) == whole
    assert parts.only_first.low > 0 or not only_first[0]
    if not whole:
        assert parts.either.status is Status.LOWER_BOUND


def test_pairs_of_different_shapes_are_refused_with_the_remedy():
    records = [sketched(0, "a"), sketched(0, "b", shape=OTHER), closed(0, 1)]
    with pytest.raises(IncompatibleError, match=f"shape differs, {SHAPE} against {OTHER}: only spans that are"):
        answer_pair(Topics(records), VIEWS, *(question("range", span(0, 1), [key]) for key in (A, B)))
    other_hash = [sketched(0, "a"), sketched(0, "b", hash="blake2b:x"), closed(0, 1)]
    with pytest.raises(IncompatibleError, match="hash differs, xxh64 against blake2b:x"):
        answer_pair(Topics(other_hash), VIEWS, *(question("range", span(0, 1), [key]) for key in (A, B)))


def test_one_release_under_two_readings_of_a_key_is_two_keys():
    """`--key 7` means a number and a text: a pair asks which."""
    records = [sketched(0, 7), sketched(0, "7", 50), sketched(0, "a"), closed(0, 1)]
    asked = question("range", span(0, 1), [A])
    both = replace(asked, keys=(replace(asked.keys[0], text="7", encoded=frozenset(map(encode_key, (7, "7")))),))
    with pytest.raises(QuestionError, match=r'7 and "7" are several keys: write the one that is meant as JSON'):
        answer_pair(Topics(records), VIEWS, both, asked)
    assert answer_pair(Topics(records), VIEWS, replace(both, joined=True), asked).first.keys == ((7,), ("7",))
