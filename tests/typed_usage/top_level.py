"""How `sfm_stream` is used, for mypy: each public name with the types that a user's own checker sees.

tests/unit/test_public_names.py holds that no public name is missing here, and runs the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import assert_type

from sfm_stream import (
    XXH64,
    BrokerAway,
    BrokerError,
    BudgetError,
    ConfigError,
    ConflictError,
    EntropyError,
    EpsilonError,
    Estimate,
    FormatError,
    IncompatibleError,
    ItemError,
    ItemHash,
    NoisyCount,
    NothingCounted,
    NothingFound,
    PairEstimate,
    PcsaSketch,
    QuestionError,
    SfmSketch,
    SfmStreamError,
    ShapeError,
    SketchShape,
    StateError,
    Status,
    StorageError,
    Tally,
    UnusableRecords,
    UsageError,
    estimate,
    estimate_pair,
    flip,
    keyed_blake2b,
    merge,
    sum_disjoint,
)


def notebook() -> None:
    """The example of the README, word for word."""
    shape = SketchShape(buckets=4096, levels=24)
    monday = PcsaSketch(shape).add(f"user {n}" for n in range(50_000))  # secret: cannot be printed or pickled
    tuesday = PcsaSketch(shape).add(f"user {n}" for n in range(30_000, 80_000))
    days: list[SfmSketch] = [flip(raw, epsilon=2) for raw in (monday, tuesday)]  # public; each flip costs epsilon
    each: list[Estimate] = [estimate(day) for day in days]  # about 50,000 each, 1.6 % off
    both = estimate(Tally.of(days))  # about 80,000 distinct over both days
    few = PcsaSketch(shape).add(["ann", "bob"])
    bits, count = estimate(flip(few, epsilon=2)), estimate(flip(few, epsilon=2, count_share=0.1))  # 2: 50 and 7 off
    print(f"{both.value:,.0f} users, 95 % interval {both.low:,.0f} to {both.high:,.0f}")

    assert_type(shape, SketchShape)
    assert_type(monday, PcsaSketch)
    assert_type(both, Estimate)
    assert_type((bits, count), tuple[Estimate, Estimate])
    assert len(each) == 2


def sketches() -> None:
    shape = SketchShape(64, 8)
    secret = PcsaSketch(shape, keyed_blake2b(bytes(16))).add([1, 2.5, "three", b"four"])
    assert_type(secret, PcsaSketch)
    assert_type(secret.hash, ItemHash)
    assert_type(XXH64.digest(b"five"), int)
    release = flip(PcsaSketch(shape).add(range(100)), 2)
    other = flip(PcsaSketch(shape).add(range(50, 150)), 2.0)
    assert_type(release, SfmSketch)
    assert_type(release.flip_threshold, int)
    assert_type(release.count, NoisyCount | None)
    counted = flip(PcsaSketch(shape).add(range(100)), 2, count_share=0.1)
    if counted.count is not None:
        assert_type(counted.count.value, int)
    assert_type(release.flip_probability, float)
    assert_type(release.hash, str)
    assert_type(release.bits, bytes)
    assert_type(merge([release, other]), SfmSketch)
    assert_type(sum_disjoint([estimate(release), estimate(other)]), Estimate)
    assert_type(Tally.of([release]) + Tally.of([other]), Tally)


def estimates() -> None:
    first, second = (flip(PcsaSketch(SketchShape(64, 8)).add(range(at, at + 100)), 2) for at in (0, 50))
    one = estimate(first, confidence=0.9)
    assert_type(one.value, float)
    assert_type(one.standard_error, float)
    assert_type((one.low, one.high), tuple[float, float])
    assert_type(one.status, Status)
    assert one.status in (Status.OK, Status.EMPTY, Status.SATURATED, Status.UNINFORMATIVE, Status.LOWER_BOUND)
    pair = estimate_pair(first, second)
    assert_type(pair, PairEstimate)
    assert_type(pair.both, Estimate)


def errors() -> None:
    """Each error is caught by its own name; all of them are SfmStreamError and have an exit code."""
    wrong: dict[type[SfmStreamError], Callable[[], object]] = {
        ShapeError: lambda: SketchShape(17, 8),
        ItemError: lambda: PcsaSketch(SketchShape(16, 8)).add([True]),
        EpsilonError: lambda: flip(PcsaSketch(SketchShape(16, 8)), 0),
        UsageError: lambda: merge([]),
        IncompatibleError: lambda: merge(flip(PcsaSketch(SketchShape(b, 8)), 1) for b in (16, 32)),
    }
    for kind, call in wrong.items():
        try:
            call()
        except kind as error:
            assert_type(error.exit_code, int)
        else:
            raise AssertionError(f"no {kind.__name__}")
    of_pipelines: list[type[SfmStreamError]] = [BudgetError, ConflictError, EntropyError, BrokerError, BrokerAway]
    of_pipelines += [NothingCounted, NothingFound, StateError, StorageError, UnusableRecords, QuestionError]
    assert all(issubclass(kind, SfmStreamError) for kind in of_pipelines)
    assert_type(FormatError("key", "too long").field, str)
    assert_type(ConfigError("pipeline.id: missing").problems, tuple[str, ...])


def refused() -> None:
    """What a type checker must refuse: were one of these accepted, its `ignore` would be an error of its own."""
    secret = PcsaSketch(SketchShape(64, 8))
    calls: list[Callable[[], object]] = [
        lambda: estimate(secret),  # type: ignore[arg-type]
        lambda: merge([secret]),  # type: ignore[list-item]
        lambda: flip(flip(secret, 1), 1),  # type: ignore[arg-type]
        lambda: Tally.of([secret]),  # type: ignore[list-item]
        lambda: secret + secret,  # type: ignore[operator]
    ]
    for call in calls:
        try:
            call()
        except (TypeError, AttributeError, UsageError):
            continue
        raise AssertionError("a secret sketch passed for a public one")
    import sfm_stream

    with suppress(AttributeError):
        sfm_stream.flipp  # type: ignore[attr-defined]  # noqa: B018 -- a name that is not there
        raise AssertionError("a name that is not there was given")
