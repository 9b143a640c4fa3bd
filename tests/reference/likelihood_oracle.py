"""The composite likelihood, its standard errors and the tally's law as the formulas stand on paper: oracle for sketch/.

Plain Python, one cell after the other; imports nothing from sfm_stream.
"""

import math
from itertools import product


def rho(buckets, levels):
    """Probability of one cell of level 1 .. levels."""
    return [2.0 ** -min(j, levels - 1) / buckets for j in range(1, levels + 1)]


def log_likelihood(buckets, levels, q, ones, n):
    """The paper's l_{p,q}(n; t), p = 1 - q."""
    total = 0.0
    for r, count in zip(rho(buckets, levels), ones, strict=True):
        one = (1 - q) - (1 - 2 * q) * (1 - r) ** n
        total += (buckets - count) * math.log(1 - one) + count * math.log(one)
    return total


def maximum(buckets, levels, q, ones, largest):
    """The n in 0 .. largest with the largest likelihood: 4000 geometric steps, then golden section around the best."""
    grid = [0.0] + [0.01 * (largest / 0.01) ** (i / 4000) for i in range(4001)]
    best = max(range(len(grid)), key=lambda i: log_likelihood(buckets, levels, q, ones, grid[i]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, 4001)]
    while high - low > 1e-9 * (1 + high):
        third = (high - low) / 3
        left = log_likelihood(buckets, levels, q, ones, low + third)
        right = log_likelihood(buckets, levels, q, ones, high - third)
        low, high = (low + third, high) if left < right else (low, high - third)
    return low


def standard_errors(buckets, levels, q, n):
    """(paper's eq. fisher-error, sandwich), the double sum over levels written out."""
    d, cells = 1 - 2 * q, rho(buckets, levels)
    information, slope = 0.0, []
    for r in cells:
        g, log_g = (1 - r) ** n, math.log1p(-r)
        a = q + d * g
        information += buckets * d * log_g**2 * g * ((1 - q) / (1 - q - d * g) - q / a)
        slope.append(-d * g * log_g * (1 / a + 1 / (1 - a)))
    variance = 0.0
    for (j, r), (i, s) in product(enumerate(cells), enumerate(cells)):
        g, h = (1 - r) ** n, (1 - s) ** n
        a = q + d * g
        if i == j:
            cov = d**2 * buckets * (buckets - 1) * ((1 - 2 * r) ** n - g * h) + buckets * a * (1 - a)
        else:
            cov = d**2 * buckets**2 * ((1 - r - s) ** n - g * h)
        variance += slope[j] * slope[i] * cov
    return information**-0.5, math.sqrt(variance) / information


def score_moments(weights, buckets, levels, empty, lit, items):
    """Mean and variance of sum over cells of weight * z for `items` items, by enumeration of every way they can fall.

    z: mean 1 and variance `empty` in an empty cell, mean 0 and variance `lit` in a lit one. Meant for tiny shapes.
    """
    cells = [(j, r) for j, r in enumerate(rho(buckets, levels)) for _ in range(buckets)]
    mean = second = noise = 0.0
    for fall in product(range(len(cells)), repeat=items):
        chance = math.prod(cells[i][1] for i in fall)
        hit = set(fall)
        total = sum(weights[j] for i, (j, _) in enumerate(cells) if i not in hit)
        noise += chance * sum(weights[j] ** 2 * (lit if i in hit else empty) for i, (j, _) in enumerate(cells))
        mean += chance * total
        second += chance * total**2
    return mean, second - mean**2 + noise


def tally_log_likelihood(buckets, levels, law, lit, histogram, n, used):
    """sum of H log Pr(c) over the levels in `used` and all counts c.

    law[m][c]: Pr(c ones | m lit windows). lit[r - 1][m - 1]: Pr(m lit windows | r items), the last r also for more.
    """
    total = 0.0
    for j in used:
        rate = -n * math.log1p(-rho(buckets, levels)[j])
        chance = [math.exp(-rate) * rate**r / math.factorial(r) for r in range(len(lit))]
        chance.append(1 - sum(chance))
        for c, count in enumerate(histogram[j]):
            shown = chance[0] * law[0][c]
            for r, spread in enumerate(lit, 1):
                shown += chance[r] * sum(weight * law[m][c] for m, weight in enumerate(spread, 1))
            total += count * math.log(shown)
    return total
