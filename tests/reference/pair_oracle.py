"""Two private sketches of overlapping sets, from their definition, simulated and enumerated: oracle for pair.py.

Imports nothing from sfm_stream. A signal of a cell is (z_A, z_B, z_A z_B), z = (p - T) / (p - q) for a noisy bit T.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]
Parts = tuple[int, int, int]
"""Items in both sets, only in the first, only in the second."""


def cell_probabilities(buckets: int, levels: int) -> Array:
    """Shape (levels * buckets,)."""
    return np.repeat([2.0 ** -min(j, levels - 1) / buckets for j in range(1, levels + 1)], buckets)


def noisy_pair(
    rng: np.random.Generator, buckets: int, levels: int, parts: Parts, qs: tuple[float, float]
) -> tuple[Bits, Bits]:
    """Bits of both sketches, each shape (levels * buckets,), every bit inverted with probability q."""
    both, first, _ = parts
    chances = cell_probabilities(buckets, levels).reshape(levels, buckets).sum(axis=1)
    level = rng.choice(levels, size=sum(parts), p=chances)
    cell = level * buckets + rng.integers(0, buckets, sum(parts))
    lit = np.zeros((2, levels * buckets), np.bool_)
    lit[0, cell[: both + first]] = True
    lit[1, cell[:both]] = lit[1, cell[both + first :]] = True
    flips = [rng.random(levels * buckets) < q for q in qs]
    return lit[0] ^ flips[0], lit[1] ^ flips[1]


def signal_moments(qs: tuple[float, float]) -> tuple[Array, Array]:
    """Mean, shape (2, 2, 3), and covariance, shape (2, 2, 3, 3), of the signal of a cell for each pair of lit bits."""
    mean, covariance = np.zeros((2, 2, 3)), np.zeros((2, 2, 3, 3))
    for lit in product((0, 1), repeat=2):
        square = np.zeros((3, 3))
        for noisy in product((0, 1), repeat=2):
            chance, z = 1.0, []
            for true, seen, q in zip(lit, noisy, qs, strict=True):
                chance *= q if true != seen else 1 - q
                z.append((1 - q - seen) / (1 - 2 * q))
            signal = np.array([z[0], z[1], z[0] * z[1]])
            mean[lit] += chance * signal
            square += chance * np.outer(signal, signal)
        covariance[lit] = square - np.outer(mean[lit], mean[lit])
    return mean, covariance


def moments(buckets: int, levels: int, parts: Parts, qs: tuple[float, float]) -> tuple[Array, Array]:
    """Mean, shape (cells, 3), and covariance, shape (cells, 3, cells, 3), of all signals, over all placements."""
    both, first, _ = parts
    chances = cell_probabilities(buckets, levels)
    cells, items = len(chances), sum(parts)
    placed = np.stack(np.meshgrid(*[np.arange(cells)] * items, indexing="ij"), axis=-1).reshape(-1, items)
    weight = chances[placed].prod(axis=1)
    lit = np.zeros((2, len(placed), cells), np.int64)
    for item in range(items):
        for sketch, inside in enumerate((item < both + first, item < both or item >= both + first)):
            if inside:
                lit[sketch, np.arange(len(placed)), placed[:, item]] = 1
    mean_of, covariance_of = signal_moments(qs)
    given = mean_of[lit[0], lit[1]].reshape(len(placed), 3 * cells)
    mean = weight @ given
    covariance = ((given * weight[:, None]).T @ given - np.outer(mean, mean)).reshape(cells, 3, cells, 3)
    for states in product((0, 1), repeat=2):
        share = weight @ ((lit[0] == states[0]) & (lit[1] == states[1]))
        for cell in range(cells):
            covariance[cell, :, cell, :] += share[cell] * covariance_of[states]
    return mean.reshape(cells, 3), covariance
