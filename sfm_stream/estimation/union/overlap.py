"""Hypotheses about how the windows of a tally share items, for the likelihood of mixture.py.

Items are of a few kinds. A kind says in how many windows its items are (their activity). A hypothesis says in how many
windows, w, the key had items at all, but for those that are everywhere: an item is in any choice of so many of these w
alike. It has these kinds:

    everywhere   in all k windows
    once         in one of the w windows
    throughout   in all w (only everywhere, if w = k)
    between      hats over ln activity around 2, 4, 8, .. < w; within a hat the shares fall like activity^-2

What is fitted is n and the share of each kind. w = 0 leaves one kind, w = 1 two. A prior keeps shares positive (a
Dirichlet distribution of weight 0.1 each) and expects ln share to bend little over ln activity, from `once` through
the hats: second differences are normal, with a standard deviation of 0.5 in one hypothesis, of 3 in its twin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.union.kernel import kernel
from sfm_stream.sketch.mechanism import Channel

Array = NDArray[np.float64]
SHARE = 0.1
_ACTIVE, _COLUMNS = 8, 128
"""Values of w, spread geometrically over 1 .. k, and columns of counts, at most."""
_BENDS = (0.5, 3.0)


@dataclass(frozen=True, slots=True, eq=False)
class Overlaps:
    """Several hypotheses, side by side; kinds that one lacks are padding.

    The state of a cell is the number of windows in which it is lit: 0 and the kernel's `set_bits`.
    """

    used: NDArray[np.bool_]
    """Shape (hypotheses, kinds)."""
    added: Array
    """Shape (hypotheses, kinds, states, states): law of the state of a cell when one more item has come to it."""
    seen: Array
    """Shape (hypotheses, kinds, states, columns): the same for the noisy count."""
    plain: Array
    """Shape (hypotheses, kinds): ln share, up to a constant, where shares fall like activity^-2."""
    bend: Array
    """Shape (hypotheses, kinds, kinds): -2 ln prior of ln share - plain is this quadratic form."""
    prior: Array
    """Shape (hypotheses,): the constants of ln evidence: what norms the prior, and (2 pi)^(kinds / 2)."""
    shown: Array
    """Shape (states, columns): law of the noisy count in each state; for large k neighbouring counts share a column."""
    first: NDArray[np.int64]
    """Shape (columns,): the first count of each column."""

    def only(self, chosen: NDArray[np.bool_]) -> Overlaps:
        """Some of the hypotheses."""
        used, added, seen = self.used[chosen], self.added[chosen], self.seen[chosen]
        return Overlaps(
            used, added, seen, self.plain[chosen], self.bend[chosen], self.prior[chosen], self.shown, self.first
        )


@lru_cache(maxsize=24)
def overlaps(channel: Channel, releases: int) -> Overlaps:
    """The hypotheses for `releases` sketches that went through one channel."""
    table = kernel(channel, releases)
    lit = np.concatenate(([0], table.set_bits))
    nearest = np.abs(lit - np.geomspace(1, releases, _ACTIVE)[:, None]).argmin(axis=1)
    rows = [row for w in (0, *np.unique(lit[nearest])) for row in _hypotheses(lit, int(w))]
    kinds = max(len(row[0]) for row in rows)
    used = np.array([np.arange(kinds) < len(row[0]) for row in rows])
    added = np.stack([_padded(row[0], (kinds, len(lit), len(lit))) for row in rows])
    plain = np.stack([_padded(row[1], (kinds,)) for row in rows])
    bend = np.stack([_padded(row[2], (kinds, kinds)) for row in rows])
    prior = np.array([row[3] for row in rows])
    first = np.unique(np.linspace(0, releases + 1, min(releases + 1, _COLUMNS), endpoint=False).astype(np.int64))
    shown = np.add.reduceat(np.vstack((table.empty, table.lit)), first, axis=1)
    return Overlaps(used, added, added @ shown, plain, bend, prior, shown, first)


def _hypotheses(lit: NDArray[np.int64], active: int) -> list[tuple[Array, Array, Array, float]]:
    """For one w: `added`, `plain`, `bend` and `prior` of one hypothesis, or two where something can bend."""
    everywhere = np.zeros((1, len(lit), len(lit)))
    everywhere[0, :, -1] = 1.0
    support = lit[(lit > 0) & (lit <= active)]
    kinds = _kinds(support)
    total = kinds.sum(axis=1)
    added = np.tensordot(kinds / total[:, None], _unions(lit, support), 1) if active else everywhere[:0]
    curved = np.diff(np.eye(max(len(kinds) - 1, 0)), 2, axis=0) if len(kinds) > 3 else np.zeros((0, 0))
    if not active or active < lit[-1]:
        added, total = np.concatenate((added, everywhere)), np.append(total, 1.0)
    size, bends = len(added), len(curved)
    dirichlet = math.lgamma(SHARE * size) - size * math.lgamma(SHARE)
    found = []
    for deviation in _BENDS if bends else _BENDS[:1]:
        steep = curved / deviation
        volume = 0.5 * float(np.linalg.slogdet(steep @ steep.T)[1]) - math.log(2.0) if bends else 0.0
        bend = _padded(steep.T @ steep, (size, size))
        found.append((added, np.log(total), bend, dirichlet + volume + 0.5 * (size - bends) * math.log(2.0 * math.pi)))
    return found


def _kinds(support: NDArray[np.int64]) -> Array:
    """Shape (kinds, support): shares of the activities `support`, 1 .. w, in each kind but everywhere, not normed."""
    active = int(support[-1]) if len(support) else 0
    if active < 2:
        return np.ones((active, active))
    knots = 2.0 ** np.arange(math.ceil(math.log2(active) - 0.5))
    knots = np.append(knots, active) if active > knots[-1] else knots
    width = np.gradient(support.astype(np.float64))
    middle = [np.interp(np.log(support), np.log(knots), row) * width for row in np.eye(len(knots))[1:-1]]
    hats = np.array([np.eye(len(support))[0], *middle, np.eye(len(support))[-1]])
    hats[1:-1, [0, -1]] = 0.0
    return np.asarray(hats * support.astype(np.float64) ** -2)


def _unions(lit: NDArray[np.int64], support: NDArray[np.int64]) -> Array:
    """Shape (support, states, states): the state after one item of each activity, windows drawn from the last's.

    Hypergeometric, and split between the neighbours where there is no such state. A cell lit in more windows than that
    has met an item from everywhere, and stays.
    """
    active = int(support[-1])
    logs = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, active + 1)))))
    laws = np.zeros((len(support), len(lit), len(lit)))
    laws[:, lit > active, lit > active] = 1.0
    m = lit[lit <= active, None]
    row = np.broadcast_to(np.arange(len(m))[:, None], (len(m), int(support[-1]) + 1))
    for a, law in zip(support, laws, strict=True):
        new = np.arange(a + 1)
        possible = (new <= active - m) & (a - new <= m)
        left, again = np.where(possible, active - m - new, 0), np.where(possible, m - a + new, 0)
        ways = logs[active - m] - logs[new] - logs[left] + logs[m] - logs[a - new] - logs[again]
        ways += logs[a] + logs[active - a] - logs[active]
        chance = np.exp(np.where(possible, ways, -np.inf))
        place = np.interp(m + new, lit, np.arange(len(lit)))
        below = np.minimum(place.astype(np.int64), len(lit) - 2)
        np.add.at(law, (row[:, : a + 1], below), chance * (1.0 - place + below))
        np.add.at(law, (row[:, : a + 1], below + 1), chance * (place - below))
    return laws


def _padded(values: Array, shape: tuple[int, ...]) -> Array:
    """`values` in the corner of zeros."""
    full = np.zeros(shape)
    full[tuple(slice(size) for size in values.shape)] = values
    return full
