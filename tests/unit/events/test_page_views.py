"""Generated page views: a pure function of seed and line number, countable but for the bad ones."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from reference.memory_batch import MemoryBatch

from sfm_stream.errors import UsageError
from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.extract import PythonExtractor
from sfm_stream.events.formats.registry import format_of
from sfm_stream.events.key_table import KeyTable
from sfm_stream.events.page_views import Traffic, page_views
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import Reason
from sfm_stream.units import DAY_MS


def lines(count: int, seed: int, traffic: Traffic | None = None) -> list[bytes]:
    return b"".join(page_views(count, seed, traffic)).split(b"\n")[:-1]


def reasons(records: list[bytes], traffic: Traffic) -> Counter[Reason]:
    form = EventSchema(
        key=("page",),
        item="user",
        time="at",
        time_unit="ms",
        earliest_ms=traffic.start_ms - DAY_MS,
        latest_ms=traffic.start_ms + 400 * DAY_MS,
    )
    extractor = PythonExtractor(format_of(form), SketchShape(4096, 24), keys=KeyTable())
    return Counter(map(Reason, extractor.columns([MemoryBatch(list(records))]).reasons.tolist()))


def test_neither_chunks_nor_count_change_a_line() -> None:
    whole = b"".join(page_views(20_000, seed=7))
    assert b"".join(page_views(20_000, seed=7, chunk_lines=17)) == whole
    assert whole.startswith(b"".join(page_views(9_001, seed=7, chunk_lines=100_000)))
    assert whole.count(b"\n") == 20_000
    assert not whole.startswith(b"".join(page_views(100, seed=8)))


def test_chunks_hold_as_many_lines_as_asked() -> None:
    assert [chunk.count(b"\n") for chunk in page_views(10_000, 1, chunk_lines=3000)] == [3000, 3000, 3000, 1000]
    assert list(page_views(0, 1)) == []


def test_without_bad_lines_all_are_counted() -> None:
    traffic = Traffic(bad_share=0)
    assert reasons(lines(5000, 1, traffic), traffic) == {Reason.OK: 5000}


def test_bad_lines_are_of_every_kind_and_never_counted() -> None:
    traffic = Traffic(bad_share=1)
    seen = reasons(lines(8192, 1, traffic), traffic)
    assert seen.keys() >= {
        Reason.FRAMED,
        Reason.NOT_UTF8,
        Reason.MALFORMED,
        Reason.DUPLICATE_FIELD,
        Reason.TIME_MISSING,
        Reason.TIME_TYPE,
        Reason.TIME_LOOKS_LIKE_SECONDS,
        Reason.TIME_LOOKS_LIKE_MICROSECONDS,
        Reason.TIME_IMPLAUSIBLE,
        Reason.KEY_MISSING,
        Reason.KEY_TYPE,
        Reason.KEY_RANGE,
        Reason.ITEM_MISSING,
        Reason.ITEM_TYPE,
        Reason.ITEM_RANGE,
        Reason.ITEM_NOT_FINITE,
        Reason.ITEM_NOT_UNICODE,
    }
    assert Reason.OK not in seen


def test_shape_of_the_traffic() -> None:
    traffic = Traffic(bad_share=0, per_second=0.5, visitors=2000)
    events = [json.loads(line) for line in lines(86_400, 3, traffic)]  # two days
    assert 100 < np.mean([len(line) for line in lines(1000, 3, traffic)]) < 140
    pages = Counter(event["page"] for event in events).most_common()
    assert pages[0][1] > 5 * pages[20][1] > 0
    users = Counter(event["user"] for event in events)
    assert len(users) < 0.5 * len(events)
    assert sum(count == 1 for count in users.values()) > 0.15 * len(events)
    at = np.array([event["at"] for event in events]) - traffic.start_ms
    hours = np.bincount(np.clip(at // 3_600_000, 0, 47), minlength=48)
    assert hours.max() > 2.5 * hours.min()
    behind = np.maximum.accumulate(at) - at
    assert 0.005 < (behind > traffic.grace_ms).mean() < 0.015
    assert (behind > 0).mean() > 0.01
    assert at.max() < 2 * DAY_MS


@pytest.mark.parametrize("wrong", [{"swing": 1.1}, {"bad_share": -0.1}, {"pages": 0}, {"per_second": 0.0}])
def test_traffic_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Traffic(**wrong)  # type: ignore[arg-type]


def test_counts_that_cannot_be_are_refused() -> None:
    for count, seed, chunk_lines in ((-1, 1, 1), (1, -1, 1), (1, 1, 0)):
        with pytest.raises(UsageError):
            list(page_views(count, seed, chunk_lines=chunk_lines))
