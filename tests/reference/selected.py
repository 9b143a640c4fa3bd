"""Unions of windows of which some were withheld by private selection, simulated; shares no code with the package."""

import math

import numpy as np
from reference.occupancy import activity, level_probabilities, noisy_histogram


def chances(epsilon, delta, size=400):
    """Shape (size,): the chance that a key with n lit cells is published (Desfontaines et al., 2022), in floats."""
    found = [0.0]
    while len(found) < size:
        last = found[-1]
        found.append(min(math.exp(epsilon) * last + delta, 1 - math.exp(-epsilon) * (1 - last - delta), 1.0))
    return np.array(found)


def selected_union(rng, shape, n, windows, pattern, q, chance):
    """(windows with a release, noisy histogram of the tally of these, None where there is none)."""
    buckets, levels = shape
    level = rng.choice(levels, size=n, p=level_probabilities(levels))
    cell = level * buckets + rng.integers(0, buckets, n)
    item, window = activity(rng, pattern, n, windows)
    lit = np.zeros((windows, levels * buckets), bool)
    lit[window, cell[item]] = True
    kept = rng.random(windows) < chance[np.minimum(lit.sum(1), len(chance) - 1)]
    released = int(kept.sum())
    if not released:
        return 0, None
    m = lit[kept].sum(0, dtype=np.int64) + np.repeat(np.arange(levels), buckets) * (released + 1)
    counts = np.bincount(m, minlength=levels * (released + 1)).reshape(levels, released + 1)
    return released, noisy_histogram(rng, counts, q)
