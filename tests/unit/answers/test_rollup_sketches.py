"""Tally and merged sketch of a published roll-up, made of its releases."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest
from support.memory_topics import Topics
from support.rollup_cases import T0, UTC, A, B, closed, quarter, windows
from support.rollup_runs import HOUR_MS, Run, bits_of, cheap_estimates, release
from support.summed_rollups import summed

from sfm_stream.answers import rollup_sketches
from sfm_stream.answers.rollup_sketches import with_sketches
from sfm_stream.pipeline.rollup import publication
from sfm_stream.sketch.tally_sum import TallySum
from sfm_stream.wire.codec import Release, RollupRecord, decode, decode_rollup
from sfm_stream.wire.keys import encode_key

NAMED = {"span": "15m"}


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication, "estimate_many", cheap_estimates)


def published(log: list[bytes], expire_ms: int | None = None) -> list[RollupRecord]:
    run = Run(UTC, log, finest={(1, "15m"): "quarter"})
    run.finish(expire_ms)
    return list(map(decode_rollup, run.history))


def releases(log: list[bytes]) -> list[Release]:
    return [record for record in map(decode, log) if isinstance(record, Release)]


def two_hours(**other: object) -> list[bytes]:
    marks = {"spans": ("15m",)} | other if other else {}
    log = [*windows(0, 1, 3, **other), *windows(1, key="b", **other), closed(0, 4, **marks)]
    return [*log, *windows(4, 7, **other), closed(4, 8, **marks)]


@pytest.mark.parametrize("other", [{}, NAMED], ids=["no named span", "named"])
@pytest.mark.parametrize("room", [1, 5_000, 64 << 20])
def test_the_sum_of_the_releases_in_it(room: int, other: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollup_sketches, "_AT_ONCE_BYTES", room)
    log = two_hours(**other)
    bare = published(log, T0 + 24 * HOUR_MS)
    assert all(record.tally is None for record in bare)
    assert {record.grain for record in bare} >= {"hour", "day"}
    found = list(with_sketches(Topics(log), bare))
    wanted = summed(bare, releases(log))
    assert found == wanted
    for one, another in zip(found, wanted, strict=True):
        assert one.tally is not None
        assert another.tally is not None
        assert one.tally.sizes == another.tally.sizes
        assert (one.tally.sizes is None) == (not other)
    assert list(with_sketches(Topics(log), found)) == found, "a record that holds both is as it is"


def test_what_came_later_or_twice_is_in_none() -> None:
    log = two_hours()
    bare = published(log)
    late = release(quarter(2))
    conflict = release(quarter(1), bits=bits_of(900))
    disturbed = [
        log[0],
        log[0],
        *log[1:3],
        conflict,
        *log[3:],
        late,
        *windows(0, epoch=2),
        *windows(0, pipeline="other"),
    ]
    assert list(with_sketches(Topics(disturbed), bare)) == list(with_sketches(Topics(log), bare))


def test_of_a_record_that_was_not_complete_the_releases_of_then() -> None:
    """A key and a span with two records: the second is of one release more."""
    log = [*windows(0, 1), closed(0, 1), *windows(2), closed(1, 4)]
    run = Run(UTC, log)
    run.read(3)
    run.rollup.expire(T0 + HOUR_MS)
    run.drain()
    run.finish()
    hours = [record for record in map(decode_rollup, run.history) if record.grain == "hour"]
    found = [record.tally for record in with_sketches(Topics(log), hours)]
    assert [tally.releases for tally in found if tally] == [2, 3]
    assert found == [record.tally for record in summed(hours, releases(log))]


def test_without_its_releases_a_record_is_as_it_is() -> None:
    log = two_hours()
    bare = published(log)
    kept = [payload for payload in log if not (isinstance(r := decode(payload), Release) and r.key == A)]
    found = list(with_sketches(Topics(kept), bare))
    assert [record.tally is None for record in found] == [record.key == A for record in bare]
    assert {record.key for record in found} == {A, B}
    assert [record for record in found if record.key == A] == [record for record in bare if record.key == A]


def test_no_more_is_read_than_it_takes() -> None:
    class Counted(Topics):
        read_records = 0

        def read(self, *args: object, **named: object):  # type: ignore[no-untyped-def, override]
            for record in super().read(*args, **named):  # type: ignore[arg-type]
                Counted.read_records += 1
                yield record

    log = two_hours()
    first = [record for record in published(log) if record.key == B]
    assert list(with_sketches(Counted(log), first)) == summed(first, releases(log))
    assert Counted.read_records == 4, "up to the release of the second key"


def test_records_of_several_versions_keep_their_order() -> None:
    log = two_hours()
    bare = published(log)
    held = list(with_sketches(Topics(log), bare))
    mixed = [replace(held[0]), *bare[1:]]
    assert list(with_sketches(Topics(log), mixed)) == held


@pytest.mark.parametrize(("grain", "hours"), [("hour", 1), ("day", 24)])
def test_a_sum_takes_no_more_memory_than_it_is_reckoned_with(grain: str, hours: int) -> None:
    """Of 20 sums of small sketches, each with all of its releases."""
    log = [*windows(*range(4 * hours)), closed(0, 4 * hours)]
    record = next(each for each in published(log, T0 + 48 * HOUR_MS) if each.grain == grain)
    assert record.released == 4 * hours
    tracemalloc.start()
    sums = [rollup_sketches._Sum(record, TallySum.like(record.of_releases)) for _ in range(20)]
    for each in sums:
        for payload in log[:-1]:
            assert each.takes(decode(payload))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    reckoned = 20 * rollup_sketches._size(record)
    assert reckoned / 4 < taken < reckoned


def test_records_that_hold_both_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their tallies are much larger than the sums that others are made of."""
    log = two_hours()
    bare = published(log)
    held, met = list(with_sketches(Topics(log), bare)), []

    def noted(records: list[RollupRecord]):  # type: ignore[no-untyped-def]
        for record in records:
            met.append(record)
            yield record

    for given, record in enumerate(with_sketches(Topics(log), noted(held)), 1):
        assert record == held[given - 1]
        assert len(met) == given
    met.clear()
    mixed = [bare[0], *held[1:]]
    monkeypatch.setattr(rollup_sketches, "_AT_ONCE_BYTES", rollup_sketches._size(bare[0]) + 1)
    first = next(with_sketches(Topics(log), noted(mixed)))
    assert (first, len(met)) == (held[0], 2), "behind one that lacks its sketch they wait, as far as there is room"


def test_records_with_long_keys_are_few_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of 64 KiB takes more than the sum of few small sketches."""
    small = published(two_hours())[0]
    bare = [replace(small, key=encode_key("x" * 60_000 + str(number))) for number in range(9)]
    met: list[RollupRecord] = []
    monkeypatch.setattr(rollup_sketches, "_AT_ONCE_BYTES", 130_000)
    first = next(with_sketches(Topics([]), (met.append(record) or record for record in bare)))  # type: ignore[func-returns-value]
    assert (first, len(met)) == (bare[0], 3)
    assert rollup_sketches._size(small) * len(bare) < 130_000, "with short keys all of them would wait"
