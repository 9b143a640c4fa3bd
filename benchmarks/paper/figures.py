"""The five figures: which cells each has, and what one trial of it does.

A trial is a function of its figure and number alone; it gives one estimate for each cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from benchmarks.paper.baselines import hll
from benchmarks.paper.cells import FM85, HLL, LEVELS, PCSA, PRIVATE, SYM, Cell, Plan, Seeded
from benchmarks.paper.items import ADDRESSES, Addresses, distinct_integers
from benchmarks.paper.methods import PS, estimates
from benchmarks.paper.theory import relative_errors
from sfm_stream.estimation.estimate import estimate
from sfm_stream.methods.logic import union
from sfm_stream.methods.mechanisms import symmetric
from sfm_stream.methods.randomized_response import privatize
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.shape import SketchShape

MILLION = 1_000_000


@dataclass(frozen=True)
class Figure:
    """cells(quick) gives the points; trial(plan, seeded, addresses) the estimates of one trial."""

    title: str
    cells: Callable[[bool], tuple[Cell, ...]]
    trial: Callable[[Plan, Seeded, Addresses | None], dict[Cell, float]]
    uses_addresses: bool = False


def counts(quick: bool) -> list[int]:
    """n from 10^2 to 10^6, three to a decade; one in a quick run."""
    steps = range(0, 13, 3 if quick else 1)
    return [round(10 ** (2 + step / 3)) for step in steps]


def cells1(quick: bool) -> tuple[Cell, ...]:
    return tuple(Cell(method, n, 1.0) for n in counts(quick) for method in PRIVATE)


def cells2(quick: bool) -> tuple[Cell, ...]:
    epsilons = (0.5, 1.0, 2.0, 4.0, math.inf)
    return tuple(Cell(PCSA if math.isinf(e) else SYM, n, e) for n in counts(quick) for e in epsilons)


def cells3(quick: bool) -> tuple[Cell, ...]:
    """Without the cells whose estimated error is above 100 %: sketches of nothing but noise."""
    sketches = (1, 2, 4, 8, 16) if quick else (1, 2, 4, 8, 16, 32, 64)
    cells = (Cell(SYM, MILLION, e, sketches=k) for k in sketches for e in (1.0, 2.0, 3.0, 4.0, 6.0))
    return tuple(cell for cell in cells if (relative_errors(cell) or (0.0,))[0] <= 1.0)


def cells4(quick: bool) -> tuple[Cell, ...]:
    epsilons = (0.25, 0.5, 1.0, 2.0, 4.0) if quick else (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
    methods = (*PRIVATE, *(method for method in PS if method not in PRIVATE))
    return tuple(Cell(method, ADDRESSES, e) for e in epsilons for method in methods)


def cells5(quick: bool) -> tuple[Cell, ...]:
    buckets = [1 << lg for lg in ((8, 10, 12) if quick else range(8, 15))]
    methods = ((SYM, 2.0), (FM85, math.inf), (HLL, math.inf))
    return tuple(Cell(method, MILLION, e, b) for b in buckets for method, e in methods)


def trial_by_n(plan: Plan, seeded: Seeded, _: Addresses | None) -> dict[Cell, float]:
    """Figures 1 and 2: one growing set; the sketch of each n is that of the n before it and the items between."""
    items = distinct_integers(seeded.items, max(cell.n for cell in plan.cells))
    raw, done, found = PcsaSketch(plan.cells[0].shape), 0, {}
    for n, cells in _by(plan.cells, lambda cell: cell.n):
        raw.add(items[done:n])
        done = n
        found |= estimates(raw, cells, seeded.coins)
    return found


def trial_of_merges(plan: Plan, seeded: Seeded, _: Addresses | None) -> dict[Cell, float]:
    """Figure 3: the items are dealt out to k sketches, each is released, and the releases are merged."""
    first = plan.cells[0]
    raws = _parts(first.shape, distinct_integers(seeded.items, first.n), max(cell.sketches for cell in plan.cells))
    found = {}
    for cell in plan.cells:
        released = [privatize(raw, cell.epsilon, symmetric, seeded.coins) for raw in raws[cell.sketches]]
        found[cell] = estimate(union(released)).value
    return found


def trial_of_addresses(plan: Plan, seeded: Seeded, addresses: Addresses | None) -> dict[Cell, float]:
    """Figure 4: the addresses under a hash of the trial's own."""
    assert addresses is not None
    raw = PcsaSketch(plan.cells[0].shape).add(addresses.rekeyed(seeded.items))
    return estimates(raw, plan.cells, seeded.coins)


def trial_by_buckets(plan: Plan, seeded: Seeded, _: Addresses | None) -> dict[Cell, float]:
    """Figure 5: one set, sketched with each number of buckets."""
    items = distinct_integers(seeded.items, plan.cells[0].n)
    found = {}
    for buckets, cells in _by((cell for cell in plan.cells if cell.method != HLL), lambda cell: cell.buckets):
        found |= estimates(PcsaSketch(SketchShape(buckets, LEVELS)).add(items), cells, seeded.coins)
    loglog = [cell for cell in plan.cells if cell.method == HLL]
    values = hll.estimates(items, [cell.shape.bucket_bits for cell in loglog])
    return found | dict(zip(loglog, values, strict=True))


FIGURES = {
    "figure1": Figure("Relative error against n at epsilon 1", cells1, trial_by_n),
    "figure2": Figure("SFM (sym): relative error against n", cells2, trial_by_n),
    "figure3": Figure("SFM (sym): relative error at n = 10^6 against merged sketches", cells3, trial_of_merges),
    "figure4": Figure("Efficiency and relative error against epsilon", cells4, trial_of_addresses, True),
    "figure5": Figure("Relative error at n = 10^6 against buckets", cells5, trial_by_buckets),
}


def make_plan(figure: str, quick: bool, addresses: Addresses | None = None) -> Plan:
    """What a run of this figure measures; addresses: the data of figure 4."""
    cells = FIGURES[figure].cells(quick)
    if addresses is None or not FIGURES[figure].uses_addresses:
        return Plan(figure, cells)
    return Plan(figure, tuple(replace(cell, n=addresses.count) for cell in cells), addresses.name)


def run_trial(plan: Plan, trial: int, addresses: Addresses | None) -> list[float]:
    """Estimates of trial number `trial`, in the order of plan.cells."""
    found = FIGURES[plan.figure].trial(plan, Seeded(plan.figure, trial), addresses)
    return [found[cell] for cell in plan.cells]


def _parts(shape: SketchShape, items: NDArray[np.int64], most: int) -> dict[int, list[PcsaSketch]]:
    """For k = most, most / 2 .. 1 the raw sketches of k parts of the items."""
    raws = {most: [PcsaSketch(shape).add(items[part::most]) for part in range(most)]}
    for k in (most >> shift for shift in range(1, most.bit_length())):
        halves = raws[2 * k]
        raws[k] = [_joined(shape, halves[i], halves[i + k]) for i in range(k)]
    return raws


def _joined(shape: SketchShape, *raws: PcsaSketch) -> PcsaSketch:
    both = PcsaSketch(shape)
    for raw in raws:
        both |= raw
    return both


def _by(cells: Iterable[Cell], key: Callable[[Cell], int]) -> Iterator[tuple[int, list[Cell]]]:
    """Cells in rising groups of one key."""
    for value, group in groupby(sorted(cells, key=key), key):
        yield value, list(group)
