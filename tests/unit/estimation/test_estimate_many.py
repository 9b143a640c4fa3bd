"""Tallies that are estimated side by side: each gets what it gets alone, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from sfm_stream.errors import UsageError
from sfm_stream.estimation.estimate import Estimate, Status, estimate, estimate_many
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.sfm import GRID, NoisyCount, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.sketch.tally_histogram import TallyHistogram

SHAPE, SMALL = SketchShape(256, 16), SketchShape(64, 12)


def tally(
    seed: int, releases: int, items: int, epsilon: int = 2, shape: SketchShape = SHAPE, counted: bool = False
) -> Tally:
    """Windows that share about half of their items."""
    rng, k = np.random.default_rng(seed), flip_threshold_of(epsilon)
    level = np.minimum(rng.geometric(0.5, 2 * items) - 1, shape.levels - 1)
    cell = level * shape.buckets + rng.integers(0, shape.buckets, 2 * items)
    parts = []
    for _ in range(releases):
        cells = np.zeros(shape.cells, np.bool_)
        cells[rng.choice(cell, items, replace=False)] = True
        count = NoisyCount(int(cells.sum()) + int(rng.integers(-9, 9)), Decimal("0.5")) if counted else None
        noisy = np.packbits(cells ^ (rng.random(shape.cells) < k / GRID), bitorder="little")
        parts.append(SfmSketch(shape, k, "xxh64", noisy.tobytes(), count))
    return Tally.of(parts)


def histogram(of: Tally) -> TallyHistogram:
    return TallyHistogram(of.shape, of.flip_threshold, of.hash, of.releases, of.histogram(), of.sizes)


MIXED = [
    *(tally(seed, 4, items) for seed, items in enumerate([0, 3, 40, 41, 42, 900, 20_000])),
    *(tally(seed, 10, 60 * seed, counted=True) for seed in range(1, 5)),
    tally(20, 1, 50),
    tally(21, 1, 50, counted=True),
    *(tally(22 + seed, 30, 200) for seed in range(2)),
    replace(tally(30, 4, 100), sizes=None),
    tally(31, 4, 100, epsilon=1),
    tally(32, 4, 100, shape=SMALL),
]


def test_each_gets_what_it_gets_alone() -> None:
    together = estimate_many(list(map(histogram, MIXED)))
    assert together == [estimate(each) for each in MIXED]
    rng = np.random.default_rng(1)
    for _ in range(2):
        order = rng.permutation(len(MIXED))[:9].tolist()
        assert estimate_many([histogram(MIXED[at]) for at in order]) == [together[at] for at in order]


def test_no_number_of_many_alike_depends_on_those_beside_it() -> None:
    """A product of matrices with more rows may round in another way."""
    many = [histogram(tally(seed, 3, 40 * seed, shape=shape)) for shape in (SHAPE, SMALL) for seed in range(24)]
    together = estimate_many(many)
    assert together == [estimate_many([each])[0] for each in many]
    assert together[5:9] == estimate_many(many[5:9])


def test_another_confidence() -> None:
    given = [histogram(each) for each in MIXED[:3]]
    assert estimate_many(given, confidence=0.8) == [estimate(each, confidence=0.8) for each in MIXED[:3]]
    with pytest.raises(UsageError, match="confidence"):
        estimate_many(given, confidence=0.5)


def test_none_and_pure_noise() -> None:
    assert estimate_many([]) == []
    noise = replace(histogram(MIXED[0]), flip_threshold=GRID // 2)
    (found,) = estimate_many([noise])
    assert isinstance(found, Estimate)
    assert found.status is Status.UNINFORMATIVE
