"""Unions that are held together: as many as take little memory, whatever it is that takes it."""

from __future__ import annotations

import tracemalloc
from decimal import Decimal

import pytest
from support.memory_topics import Topics
from support.published_topics import T0, VIEWS, closed, question, span
from support.rollup_runs import QUARTER_MS, release

from sfm_stream.answers import release_sum, sketch_reading
from sfm_stream.answers.cover import Candidate
from sfm_stream.answers.joined_union import JoinedUnion
from sfm_stream.answers.key_cover import KeyCover
from sfm_stream.answers.key_union import KeyUnion
from sfm_stream.answers.rows import rows_of
from sfm_stream.answers.sketch_reading import SketchReading
from sfm_stream.sketch.sfm import NoisyCount
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.wire.codec import decode_release

SMALL, LARGE = SketchShape(16, 24), SketchShape(4096, 24)


def candidate(record, place=0):
    return Candidate(record.window, 1, 0, "15m", record.sketch.shape, "xxh64", (0, place))


@pytest.mark.parametrize("step", [1, 2], ids=["no gaps", "gaps"])
@pytest.mark.parametrize(("shape", "releases"), [(SMALL, 1), (SMALL, 100), (SMALL, 1000), (LARGE, 4)])
def test_unions_take_no_more_memory_than_they_are_reckoned_with(shape, releases, step):
    """Sums of small sketches are little beside what each release says of its own window, and beside the objects."""
    counts = [NoisyCount(number % 7, Decimal("0.5")) for number in range(releases)]
    payloads = [
        release(
            T0 + step * number * QUARTER_MS,
            shape=shape,
            span="15m",
            count=counts[number],
            bits="01" * (shape.cells // 2),
        )
        for number in range(releases)
    ]
    records = [decode_release(each) for each in payloads]
    whole = span(0, step * releases)

    def single():
        union = KeyUnion(b"a", KeyCover(whole))
        union.take([candidate(record) for record in records])
        return union

    def joined():
        union = JoinedUnion(whole, None)
        for number, record in enumerate(records):
            if number % 50 == 0:
                union.begin(b"%d" % number)
            union.take([candidate(record)])
        return union

    for make in (single, joined):
        tracemalloc.start()
        unions = [make() for _ in range(20)]
        for union in unions:
            for record in records:
                union.sum.include(record)
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        reckoned = sum(union.held_bytes for union in unions)
        assert reckoned / 4 < taken < reckoned, make.__name__


def test_long_keys_are_reckoned_with():
    """A key of 64 KiB takes more than all else of a union of few small sketches."""
    payload = release(T0, shape=SMALL, span="15m", bits="01" * (SMALL.cells // 2))
    record = decode_release(payload)

    def single(number):
        union = KeyUnion(b"%065000d" % number, KeyCover(record.window))
        union.take([candidate(record)])
        return union

    def joined(number):
        union = JoinedUnion(record.window, None)
        for other in range(5):
            union.begin(b"%065000d" % (5 * number + other))
            union.take([candidate(record)])
        return union

    for make in (single, joined):
        tracemalloc.start()
        unions = [make(number) for number in range(20)]
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        reckoned = sum(union.held_bytes for union in unions)
        assert reckoned / 4 < taken < reckoned, make.__name__


def test_few_unions_are_held_where_each_has_many_small_releases(monkeypatch):
    """Of 30 keys with 60 windows of 16 buckets. The cells of all sums together would take 9 KB."""
    log = [release(T0 + number * QUARTER_MS, f"k{key}") for key in range(30) for number in range(60)]
    held = []
    finish = SketchReading.finish

    def noted(reading):
        finished = finish(reading)
        held.append(len(finished))
        return finished

    monkeypatch.setattr(SketchReading, "finish", noted)
    monkeypatch.setattr(sketch_reading, "HELD_BYTES", 20_000)
    rows = rows_of(Topics([*log, closed(0, 60)]), VIEWS, question("range", span(0, 60)))
    assert len(rows) == sum(held) == 30
    assert 1 <= max(held) < 10


def test_unions_of_equally_many_releases_are_estimated_one_after_the_other(monkeypatch):
    """What an estimate needs beside the tally follows from their number, and is not kept for many of them."""
    windows = {f"k{key}": 2 + key % 3 for key in range(9)}
    log = [release(T0 + number * QUARTER_MS, key) for key, count in windows.items() for number in range(count)]
    estimated = []
    estimate = release_sum.estimate_union

    def noted(tallies):
        estimated.append(tallies[0].releases)
        return estimate(tallies)

    monkeypatch.setattr(release_sum, "estimate_union", noted)
    rows = list(rows_of(Topics([*log, closed(0, 4)]), VIEWS, question("range", span(0, 4))))
    assert estimated == sorted(estimated) == [2] * 3 + [3] * 3 + [4] * 3
    assert [(row.key, row.released) for row in rows] == [((key,), count) for key, count in windows.items()]
