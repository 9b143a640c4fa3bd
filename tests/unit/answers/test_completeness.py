"""How far a pipeline has come, by the close markers of its partitions."""

from __future__ import annotations

from dataclasses import replace

from support.memory_topics import Topics
from support.published_topics import T0, VIEWS, closed, span
from support.rollup_runs import DAY_MS, HOUR_MS, QUARTER_MS, marker

from sfm_stream.answers.completeness import OpenPartition, completeness
from sfm_stream.answers.completeness_json import completeness_json

THREE = {"partitions": 3}


def test_partitions_behind_the_furthest_are_open():
    """One is behind, and one has decided nothing, which holds nothing up."""
    records = [closed(n, n + 1, **THREE) for n in range(8)] + [closed(0, 5, partition=2, **THREE)]
    found = completeness(Topics(records), VIEWS)
    assert found.open == (OpenPartition(1, None), OpenPartition(2, T0 + 5 * QUARTER_MS))
    assert (found.partitions, found.through_ms) == (3, T0 + 5 * QUARTER_MS)
    assert [(each.name, each.last) for each in found.spans] == [("15m", span(4, 5))]
    shown = completeness_json(found)
    assert shown["open"] == [
        {"partition": 1, "through": None},
        {"partition": 2, "through": "2026-01-01T01:15:00Z"},
    ]


def test_a_coarser_span_is_as_far_as_its_own_markers_and_days_are_those_of_the_zone():
    named = {"spans": ("hour", "day")}
    berlin = [marker(T0 + n * HOUR_MS, T0 + (n + 1) * HOUR_MS, HOUR_MS, span="hour", **named) for n in range(-1, 30)]
    one_day = [marker(T0 - HOUR_MS, T0 - HOUR_MS + DAY_MS, DAY_MS, span="day", **named)]
    terms = replace(VIEWS, zone="Europe/Berlin")
    hour, day = completeness(Topics([*berlin, *one_day]), terms).spans
    assert (hour.through_ms, day.through_ms) == (T0 + 30 * HOUR_MS, T0 + 23 * HOUR_MS)
    assert (day.last.start_ms, day.last.end_ms) == (T0 - HOUR_MS, T0 + 23 * HOUR_MS)
    hour, day = completeness(Topics(berlin[:3]), terms).spans
    assert (day.name, day.through_ms, day.last) == ("day", None, None)


def test_the_newest_epoch_is_the_one_that_is_said():
    records = [closed(0, 4), closed(4, 6, epoch=2)]
    found = completeness(Topics(records), VIEWS)
    assert (found.epoch, found.through_ms, found.open) == (2, T0 + 6 * QUARTER_MS, ())
