"""Sketches simulated from their definition, with numpy's generators; shares no code with the package.

Only the benchmarks and the statistical tests use it: they need tens of thousands of sketches, and the package itself
has no seedable randomness.
"""

import math

import numpy as np

PATTERNS = ("disjoint", "same", "half", "heavy", "one", "day")


def level_probabilities(levels):
    """Shape (levels,): 1/2, 1/4, ..., and the last one twice."""
    return np.array([2.0 ** -min(j, levels - 1) for j in range(1, levels + 1)])


def lit_cells(rng, buckets, levels, n):
    """Shape (levels,): lit cells after n distinct items, each thrown into one level and one of its buckets."""
    lit = np.empty(levels, int)
    for j, items in enumerate(rng.multinomial(n, level_probabilities(levels))):
        # With 40 items a bucket beyond the coupon collector's time a cell is left empty once in e^40 sketches.
        full = items > buckets * (math.log(buckets) + 40)
        lit[j] = buckets if full else np.count_nonzero(np.bincount(rng.integers(0, buckets, items)))
    return lit


def noisy_ones(rng, lit, buckets, q):
    """Shape (levels,): ones after each cell was inverted with probability q."""
    return rng.binomial(lit, 1 - q) + rng.binomial(buckets - lit, q)


def activity(rng, pattern, n, windows):
    """(item, window) pairs, every item in at least one window.

    disjoint: each item in one random window. same: in all. half: the first half in all, the others in one. heavy: a
    share of the windows that is Pareto distributed, most items in one or two. one: all in the first window. day: window
    sizes like a day's, e^6 between night and noon, one or more visits each.
    """
    items = np.arange(n)
    if pattern == "disjoint":
        return items, rng.integers(0, windows, n)
    if pattern == "one":
        return items, np.zeros(n, int)
    if pattern in ("same", "half"):
        often = n if pattern == "same" else n // 2
        once = np.arange(often, n)
        return (
            np.concatenate([np.repeat(np.arange(often), windows), once]),
            np.concatenate([np.tile(np.arange(windows), often), rng.integers(0, windows, once.size)]),
        )
    if pattern == "day":
        weights = np.exp(3 * np.sin(np.arange(windows) / windows * 2 * np.pi))
        visits = np.repeat(items, rng.geometric(0.5, n))
        return visits, rng.choice(windows, size=visits.size, p=weights / weights.sum())
    if pattern == "heavy":
        share = np.minimum(1, rng.pareto(1.0, n) / windows + 0.5 / windows)
        visit, window = np.nonzero(rng.random((n, windows)) < share[:, None])
        never = np.setdiff1d(items, visit)
        return np.concatenate([visit, never]), np.concatenate([window, rng.integers(0, windows, never.size)])
    raise ValueError(pattern)


def lit_windows(rng, buckets, levels, n, windows, pattern):
    """Shape (levels, windows + 1): cells of each level that are lit in m of the windows, m = 0 .. windows."""
    level = rng.choice(levels, size=n, p=level_probabilities(levels))
    cell = level * buckets + rng.integers(0, buckets, n)
    item, window = activity(rng, pattern, n, windows)
    lit = np.zeros((windows, levels * buckets), bool)
    lit[window, cell[item]] = True
    m = lit.sum(0, dtype=np.int64) + np.repeat(np.arange(levels), buckets) * (windows + 1)
    return np.bincount(m, minlength=levels * (windows + 1)).reshape(levels, windows + 1)


def noisy_histogram(rng, lit, q):
    """Shape like `lit`: cells with c noisy ones, c = 0 .. windows."""
    windows = lit.shape[1] - 1
    return rng.multinomial(lit, count_law(windows, q)).sum(1)


def count_law(windows, q):
    """Shape (windows + 1, windows + 1): Pr(c noisy ones | m lit windows)."""
    law = np.zeros((windows + 1, windows + 1))
    for m in range(windows + 1):
        hits = np.array([math.comb(m, i) * (1 - q) ** i * q ** (m - i) for i in range(m + 1)])
        rest = windows - m
        flips = np.array([math.comb(rest, i) * q**i * (1 - q) ** (rest - i) for i in range(rest + 1)])
        law[m] = np.convolve(hits, flips)
    return law / law.sum(1, keepdims=True)
