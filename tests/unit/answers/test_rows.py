"""Answers from published records, over a topic that is a list."""

import math
from dataclasses import replace
from decimal import Decimal

import pytest
from support.memory_topics import Topics
from support.published_topics import K1, K4, T0, UTC, VIEWS, closed, question, rolled, sketched, span
from support.rollup_runs import DAY_MS, HOUR_MS, QUARTER_MS, Run, marker

from sfm_stream.answers.answer import answer
from sfm_stream.answers.asked_keys import asked_key
from sfm_stream.answers.asked_last import LastUnits
from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.rollup_sketches import with_sketches
from sfm_stream.answers.rows import rows_of
from sfm_stream.answers.unanswered import unanswered
from sfm_stream.errors import ConflictError, FormatError, IncompatibleError, NothingFound
from sfm_stream.estimation.estimate import estimate, lower_bound
from sfm_stream.estimation.mixed_union import estimate_union
from sfm_stream.pipeline.rollup.coverage import Absence
from sfm_stream.privacy.epsilon import epsilon_of
from sfm_stream.sketch.sfm import NoisyCount
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.types import StoredRecord, Window
from sfm_stream.wire.codec import decode_release, decode_rollup
from sfm_stream.wire.keys import encode_key

PRESENCE = ReleaseTerms("views", Absence(1))
"""Of the first epoch it is known that a key without a release had no event."""
SELECTED = ReleaseTerms("views", epsilon_selection=0.5)
OTHER = ReleaseTerms("other")


# single windows


def test_a_row_for_each_release_in_order_of_window_and_key():
    records = [sketched(1, "b"), sketched(1, "a"), sketched(0, "a"), closed(0, 2), sketched(2, ("x", 7))]
    rows = list(rows_of(Topics(records), VIEWS, question("window")))
    assert [(row.key, row.window) for row in rows] == [
        (("a",), span(0, 1)),
        (("a",), span(1, 2)),
        (("b",), span(1, 2)),
        (("x", 7), span(2, 3)),
    ]
    assert {(row.grain, row.released, row.windows, row.complete, row.epoch) for row in rows} == {
        ("window", 1, 1, True, 1)
    }
    assert all(row.epsilon == epsilon_of(K4) and abs(row.epsilon - 4) < 1e-9 for row in rows)
    assert rows[0].estimate == estimate(decode_release(records[2]).sketch)
    dearer = list(rows_of(Topics(records), SELECTED, question("window")))
    assert [row.epsilon for row in dearer] == [epsilon_of(K4) + 0.5] * 4


def test_windows_are_chosen_by_span_key_and_pipeline():
    records = [sketched(n, key) for n in range(4) for key in ("a", "b")] + [sketched(1, pipeline="other")]
    topics = Topics(records)
    rows = list(rows_of(topics, VIEWS, question("window", span(1, 3), {encode_key("b"), encode_key("nobody")})))
    assert [(row.key, row.window) for row in rows] == [(("b",), span(1, 2)), (("b",), span(2, 3))]
    assert [row.window for row in rows_of(topics, OTHER, question("window"))] == [span(1, 2)]
    assert list(rows_of(topics, VIEWS, question("window", keys=set()))) == []


def test_windows_of_epochs_of_different_shape_stand_side_by_side():
    records = [sketched(0), sketched(1, shape=SketchShape(16, 4), epoch=2)]
    assert [row.epoch for row in rows_of(Topics(records), VIEWS, question("window"))] == [1, 2]


# one release, one payload


def range_of(topics, keys=None):
    return list(rows_of(topics, VIEWS, question("range", span(0, 4), keys)))


def windows_of(topics, keys=None):
    return list(rows_of(topics, VIEWS, question("window", span(0, 4), keys)))


@pytest.mark.parametrize("rows", [range_of, windows_of])
def test_identical_copies_count_once(rows):
    records = [sketched(0), sketched(1)]
    assert rows(Topics([*records, *records])) == rows(Topics(records))


@pytest.mark.parametrize("rows", [range_of, windows_of])
@pytest.mark.parametrize("change", [{"items": 41}, {"unit": "blanked"}, {"k": K1}, {"partitions": 2}])
def test_a_second_payload_for_a_release_is_an_incident(rows, change):
    records = [sketched(0), sketched(0, **change)]
    wanted = f"release {decode_release(records[0]).release_id.hex()} was published with two different payloads"
    with pytest.raises(ConflictError, match=wanted):
        rows(Topics(records))
    assert rows(Topics(records), {encode_key("b")}) == [], "another key is not asked"


@pytest.mark.parametrize("rows", [range_of, windows_of])
def test_bytes_that_are_no_record_are_not_passed_over(rows):
    class Garbage(Topics):
        def read(self, topic, partition=None, offset=0):
            yield StoredRecord(0, 0, encode_key("a"), b"garbage", T0 + QUARTER_MS)

    with pytest.raises(FormatError):
        rows(Garbage())


# hours and days


def test_rollup_rows_are_what_was_published():
    records = [sketched(0), sketched(2), sketched(5), sketched(5, "b"), closed(0, 96)]
    history = rolled(records)
    hours = list(rows_of(Topics(records, history), VIEWS, question("hour")))
    assert [(row.key, row.window, row.released, row.windows) for row in hours] == [
        (("a",), span(0, 4), 2, 4),
        (("a",), span(4, 8), 1, 4),
        (("b",), span(4, 8), 1, 4),
    ]
    (day,) = rows_of(Topics(records, history), PRESENCE, question("day", keys={encode_key("a")}))
    assert (day.window, day.released, day.windows, day.complete) == (Window(T0, T0 + DAY_MS), 3, 96, True)
    assert day.epsilon == 3 * epsilon_of(K4)
    (dearer,) = rows_of(Topics(records, history), SELECTED, question("day", keys={encode_key("a")}))
    assert dearer.epsilon == 3 * (epsilon_of(K4) + 0.5)
    assert list(rows_of(Topics(records, history), VIEWS, question("quarter"))) == []
    assert list(rows_of(Topics(records, history), OTHER, question("day"))) == []

    published = next(r for r in map(decode_rollup, history) if r.grain == "day" and r.key == encode_key("a"))
    shown = day.estimate
    assert (shown.value, shown.standard_error) == (published.value, published.standard_error)
    assert (shown.low, shown.high, str(shown.status)) == (published.low, published.high, published.status)
    (of_releases,) = with_sketches(Topics(records), [published])
    assert of_releases.tally == Tally.of(decode_release(record).sketch for record in records[:3])
    found = estimate(of_releases.tally)
    assert math.isclose(shown.value, found.value, rel_tol=1e-5)
    assert shown.confidence == found.confidence


def test_rollups_are_chosen_by_span():
    history = rolled([sketched(n) for n in range(12)] + [closed(0, 12)])
    topics = Topics(rollups=history)
    rows = rows_of(topics, VIEWS, question("hour", span(3, 12)))
    assert [row.window for row in rows] == [span(4, 8), span(8, 12)]
    assert list(rows_of(topics, VIEWS, question("hour", span(5, 8)))) == []


@pytest.mark.parametrize("backwards", [False, True])
def test_the_newest_revision_is_the_answer(backwards):
    run = Run(UTC, [sketched(0), closed(0, 1)])
    run.finish(T0 + HOUR_MS)
    run.log += [sketched(1), closed(1, 4)]
    run.finish(T0 + HOUR_MS)
    assert len(run.history) == 2
    before, after = (
        list(rows_of(Topics(rollups=history), VIEWS, question("hour")))
        for history in (run.history[:1], run.history[::-1] if backwards else run.history)
    )
    assert [(row.released, row.complete) for row in before] == [(1, False)]
    assert [(row.released, row.complete) for row in after] == [(2, True)]


def test_epochs_in_one_hour_give_a_row_each():
    records = [sketched(0), closed(0, 2), sketched(2, epoch=2, k=K1), closed(2, 4, epoch=2)]
    rows = list(rows_of(Topics(rollups=rolled(records)), VIEWS, question("hour")))
    assert [(row.epoch, row.epsilon, row.released) for row in rows] == [(1, epsilon_of(K4), 1), (2, epsilon_of(K1), 1)]


# unions


def test_a_union_is_the_estimate_of_the_tally_of_its_windows():
    records = [sketched(n) for n in range(6)] + [sketched(2, "b"), closed(0, 6)]
    first, second = rows_of(Topics(records), PRESENCE, question("range", span(1, 5)))
    assert first.estimate == estimate(Tally.of(decode_release(r).sketch for r in records[1:5]))
    assert (first.key, first.grain, first.window, first.epoch) == (("a",), "range", span(1, 5), 1)
    assert (first.released, first.windows, first.complete) == (4, 4, True)
    assert first.epsilon == pytest.approx(4 * 4)
    assert (second.key, second.released, second.windows) == (("b",), 1, 4)
    assert second.epsilon == epsilon_of(K4)
    assert second.estimate == estimate(decode_release(records[6]).sketch)


def test_a_union_over_epochs_of_one_epsilon_is_tallied():
    records = [sketched(0), closed(0, 1), sketched(1, epoch=2), sketched(2, epoch=2), closed(1, 4, epoch=2)]
    (row,) = range_of(Topics(records))
    assert row.estimate == lower_bound(estimate(Tally.of(decode_release(records[i]).sketch for i in (0, 2, 3))))
    assert (row.epoch, row.released, row.windows, row.complete) == (2, 3, 4, True)


def test_a_union_over_epochs_of_two_epsilons_is_that_of_two_tallies():
    records = [sketched(0), sketched(1), sketched(2, k=K1, epoch=2), sketched(3, k=K1, epoch=2)]
    (row,) = range_of(Topics(records))
    tallies = [Tally.of(decode_release(r).sketch for r in part) for part in (records[:2], records[2:])]
    assert row.estimate == estimate_union(tallies)
    assert row.epsilon == pytest.approx(2 * 4 + 2 * 1)
    (dearer,) = rows_of(Topics(records), SELECTED, question("range", span(0, 4)))
    assert dearer.epsilon == pytest.approx(2 * 4.5 + 2 * 1.5)
    assert range_of(Topics(records[::-1])) == [row], "whatever the order in the topic"


@pytest.mark.parametrize(
    "other", [{"shape": SketchShape(128, 8)}, {"shape": SketchShape(64, 9)}, {"hash": "blake2b:x"}]
)
def test_a_union_over_shapes_or_hashes_is_refused(other):
    records = [sketched(0), sketched(1, epoch=2, **other), sketched(1, "b", epoch=2, **other)]
    with pytest.raises(IncompatibleError, match="epochs 1 and 2 of pipeline views have sketches of different shape or"):
        range_of(Topics(records))
    (only,) = range_of(Topics(records), {encode_key("b")})
    assert only.epoch == 2, "a key that is in one of them only is answered"


@pytest.mark.parametrize(
    ("markers", "complete"),
    [
        ([], False),
        ([closed(0, 3)], False),
        ([closed(0, 3), closed(3, 4)], True),
        ([closed(0, 8)], True),
        ([closed(0, 8, pipeline="other")], False),
        ([marker(T0, T0 + DAY_MS, partition=1, partitions=2)], False),
        ([closed(0, 2), closed(2, 4, epoch=2)], True),
        ([closed(0, 2), closed(3, 8, epoch=2)], False),  # the first epoch has not come to the second
        ([closed(0, 1), closed(8, 9, epoch=2)], False),
        ([closed(0, 4), closed(8, 9, epoch=2)], True),
    ],
)
def test_a_union_is_complete_when_nothing_more_can_come(markers, complete):
    (row,) = range_of(Topics([sketched(0), *markers]))
    assert row.complete is complete


def test_nothing_published_gives_no_rows():
    assert range_of(Topics()) == windows_of(Topics()) == []
    assert list(rows_of(Topics(), VIEWS, question("day"))) == []


# whole answers


def test_an_answer_has_its_rows_and_a_line_for_each_key_without_one():
    records = [sketched(n, key) for n in range(4) for key in ("a", "b")] + [closed(0, 4)]
    topics = Topics(records, rolled(records))
    for grain, count in (("window", 4), ("range", 1), ("hour", 1), (None, 1)):
        asked = Question(grain, (asked_key("a", 1), asked_key("nobody", 1)), span(0, 4))
        given = answer(topics, VIEWS, asked)
        assert [row.key for row in given.rows] == [("a",)] * count
        assert given.unanswered == (
            "--key nobody: nothing is published for it in this span; there are others, such as a, b",
        )
    with pytest.raises(NothingFound, match=r"--key nobody: nothing is published for this key; .* others, such as a, b"):
        answer(topics, VIEWS, Question("window", (asked_key("nobody", 1),)))
    with pytest.raises(NothingFound, match="pipeline views: no days are published yet, only windows"):
        answer(Topics(records), VIEWS, question("day"))
    with pytest.raises(NothingFound, match=r"no days are published yet, .* or --last$"):
        unanswered(Topics(records), "views", question("day"), frozenset())
    of_last = replace(question("day"), last=LastUnits("7d", 7, "day", 0))
    with pytest.raises(NothingFound, match=r"no days are published yet, .* or --last 7d without --by$"):
        unanswered(Topics(records), "views", of_last, frozenset())


# released spans


def counted(number, **other):
    return sketched(number, count=NoisyCount(40, Decimal("0.5")), **other)


def test_a_merged_roll_up_has_the_price_of_bits_and_counts():
    named = {"span": "15m", "spans": ("15m",)}
    records = [*(counted(n, span="15m") for n in range(4)), closed(0, 4, **named)]
    (row,) = rows_of(Topics(rollups=rolled(records)), SELECTED, question("hour"))
    assert (row.origin, dict(row.releases), row.windows, row.missing) == ("merged", {"15m": 4}, 4, ())
    assert row.epsilon == pytest.approx(4 * (4 + 0.5 + 0.5))
    (window, *_) = rows_of(Topics(records), SELECTED, question("window"))
    assert (window.origin, dict(window.releases), window.epsilon) == ("raw", {"15m": 1}, epsilon_of(K4) + 0.5 + 0.5)


def test_a_roll_up_that_was_passed_on_is_raw_and_one_release():
    spans = ("15m", "hour")
    hour = counted(0, window_ms=HOUR_MS, span="hour")
    records = [*(sketched(n, span="15m") for n in range(4)), closed(0, 4, span="15m", spans=spans)]
    records += [hour, marker(T0, T0 + HOUR_MS, HOUR_MS, span="hour", spans=spans)]
    (row,) = rows_of(Topics(rollups=rolled(records)), VIEWS, question("hour"))
    assert (row.origin, dict(row.releases), row.windows, row.missing) == ("raw", {"hour": 1}, 1, ())
    assert row.epsilon == epsilon_of(K4) + 0.5
    assert row.estimate.value == pytest.approx(estimate(decode_release(hour).sketch).value, rel=1e-5)
    (same,) = rows_of(Topics(records), VIEWS, question("range", span(0, 4)))
    assert (same.origin, dict(same.releases), same.epsilon) == ("raw", {"hour": 1}, row.epsilon)


@pytest.mark.parametrize("released", [3, 4])
def test_what_a_merged_roll_up_is_missing_has_a_length_and_no_times(released):
    records = [*(sketched(n) for n in range(released)), closed(0, 4)]
    (row,) = rows_of(Topics(rollups=rolled(records)), VIEWS, question("hour"))
    assert (row.missing_ms, row.missing) == ((QUARTER_MS, None) if released == 3 else (0, ()))
    (row,) = rows_of(Topics(rollups=rolled(records)), PRESENCE, question("hour"))
    assert (row.missing_ms, row.missing) == (0, ())
