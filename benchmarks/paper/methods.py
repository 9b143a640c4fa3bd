"""The paper's four private methods, and PCSA without noise: from a raw sketch to estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from benchmarks.paper.baselines import fm85
from benchmarks.paper.baselines.pagh_stausholm import READINGS, RELATIVE, Reading, intersect
from benchmarks.paper.cells import FM85, LOOSE, PCSA, SYM, TIGHT, XOR, Cell, SeededCoins
from sfm_stream.estimation import one_sketch
from sfm_stream.estimation.estimate import estimate
from sfm_stream.methods.mechanisms import pagh_stausholm, symmetric, xor
from sfm_stream.methods.randomized_response import privatize
from sfm_stream.sketch.mechanism import Channel, Mechanism
from sfm_stream.sketch.noisy_bits import NoisyBitmap
from sfm_stream.sketch.raw import PcsaSketch

MECHANISMS: dict[str, Callable[[float], Mechanism]] = {
    SYM: symmetric,
    XOR: xor,
    TIGHT: xor,
    LOOSE: pagh_stausholm,
}
"""How a method makes bits noisy. PS (tight) is the estimator of Pagh and Stausholm on the sketch of SFM (xor)."""
NOISELESS = Channel(2.0**-24, 2.0**-24, 1.0 - 2.0**-23)
"""As good as no noise, and without its division by zero."""


def reading_method(method: str, reading: Reading) -> str:
    """The name of a PS method under one of the readings; the first reading has the plain name."""
    return method if reading is RELATIVE else f"{method}, {reading.name}"


PS: dict[str, tuple[str, Reading]] = {
    reading_method(method, reading): (method, reading) for method in (TIGHT, LOOSE) for reading in READINGS
}
"""Name -> (which sketch, how its interval is read)."""


def estimates(raw: PcsaSketch, cells: Iterable[Cell], coins: SeededCoins) -> dict[Cell, float]:
    """The estimates of n at those cells from one raw sketch; methods with the same noisy bits share them."""
    noisy: dict[tuple[object, float], NoisyBitmap] = {}
    found: dict[Cell, float] = {}
    intervals: dict[Reading, list[tuple[Cell, NoisyBitmap]]] = {}
    for cell in cells:
        if cell.method in (PCSA, FM85):
            found[cell] = _without_noise(raw, cell)
            continue
        sketch, reading = PS.get(cell.method, (cell.method, None))
        kind = MECHANISMS[sketch]
        if (kind, cell.epsilon) not in noisy:
            noisy[kind, cell.epsilon] = privatize(raw, cell.epsilon, kind, coins)
        bits = noisy[kind, cell.epsilon]
        if reading is None:
            found[cell] = estimate(bits).value
        else:
            intervals.setdefault(reading, []).append((cell, bits))
    for reading, jobs in intervals.items():
        found |= _midpoints(reading, jobs)
    return found


def ones(raw: PcsaSketch) -> NDArray[np.int64]:
    """Shape (levels,): lit cells of each level of the secret bitmap."""
    return np.bitwise_count(raw.bits.reshape(raw.shape.levels, -1)).sum(axis=1, dtype=np.int64)


def _without_noise(raw: PcsaSketch, cell: Cell) -> float:
    if cell.method == FM85:
        return fm85.estimate(raw.bits, raw.shape)
    return one_sketch.solve(raw.shape, NOISELESS, ones(raw), 0.95).value


def _midpoints(reading: Reading, jobs: list[tuple[Cell, NoisyBitmap]]) -> dict[Cell, float]:
    """All cells of one reading and one shape at once."""
    channels = [bits.mechanism.channel for _, bits in jobs]
    intervals = intersect(
        jobs[0][0].shape,
        np.array([bits.ones() for _, bits in jobs]),
        np.array([channel.p for channel in channels]),
        np.array([channel.q for channel in channels]),
        reading,
    )
    return {cell: float(value) for (cell, _), value in zip(jobs, intervals.estimate, strict=True)}
