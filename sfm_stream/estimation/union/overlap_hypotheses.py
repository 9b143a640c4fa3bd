"""Hypotheses about how the windows of a tally share items, for the likelihood of mixture_estimate.py.

docs/accuracy.md, eq. 23 to 27. The activity of an item is the number of windows it is in. A hypothesis fixes w, the
number of windows that have any items, not counting items that are in all k windows. An item of activity a is in each
choice of a of these w windows with the same probability. Items are of a few kinds:

    everywhere   in all k windows
    once         in one of the w windows
    throughout   in all w windows (if w = k, this is `everywhere`)
    between      activities around 2, 4, 8, .. < w: a hat function over ln activity times activity^-2 (eq. 26)

The fit finds n and the share of each kind. w = 0 has the kind `everywhere` only; w = 1 has `everywhere` and `once`.
The prior (eq. 27) is a Dirichlet distribution of the shares with weight 0.1 each, which keeps them above 0, times a
normal distribution of the second differences of ln share along `once`, `between` and `throughout`, which keeps shares
of neighbouring activities similar. For each w there is one hypothesis with a standard deviation of 0.5 and one with 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.kept_results import keep_results
from sfm_stream.estimation.union.count_noise import count_noise
from sfm_stream.sketch.mechanism import Channel

Array = NDArray[np.float64]
SHARE_WEIGHT = 0.1
"""The Dirichlet weight of each share."""
_MAX_ACTIVE, _MAX_COLUMNS = 8, 128
"""At most so many values of w, spread geometrically over 1 .. k, and so many columns of counts."""
_AT_ONCE_NUMBERS = 1 << 16
"""In each array of states and numbers of windows, of which there are many for many releases."""
_BEND_DEVIATIONS = (0.5, 3.0)
"""Standard deviations of the second differences of ln share."""


@dataclass(frozen=True, slots=True, eq=False)
class OverlapHypotheses:
    """Several hypotheses, side by side. A hypothesis with fewer kinds than another is padded.

    The state of a cell is the number m of windows in which it is set: 0, or one of CountNoise.set_windows.
    """

    used: NDArray[np.bool_]
    """Shape (hypotheses, kinds): False for padding."""
    added: Array
    """Shape (hypotheses, states * states, kinds): A_i, the distribution of a cell's state after one more item of a kind
    (eq. 23), states of before and after in one axis."""
    added_counts: Array
    """Shape (hypotheses, kinds * columns, states): the same for the noisy count that the cell then shows, by its state
    before."""
    expected_log_share: Array
    """Shape (hypotheses, kinds): x0 of eq. 27, ln share up to a constant if shares fall like activity^-2."""
    bend: Array
    """Shape (hypotheses, kinds, kinds): K of eq. 27, the precision of ln share around x0."""
    log_norm: Array
    """Shape (hypotheses,): the constant of ln evidence (eq. 25): the norm of the prior, and (2 pi)^(kinds / 2)."""
    counts: Array
    """Shape (states, columns): the distribution of the noisy count in each state (eq. 20). For large k several
    neighbouring counts share a column."""
    first_counts: NDArray[np.int64]
    """Shape (columns,): the first count of each column."""


@keep_results(most=24, most_bytes=32 << 20)
def overlap_hypotheses(channel: Channel, releases: int) -> OverlapHypotheses:
    """The hypotheses for `releases` sketches with the same flip probability."""
    noise = count_noise(channel, releases)
    states = np.concatenate(([0], noise.set_windows))
    nearest = np.abs(states - np.geomspace(1, releases, _MAX_ACTIVE)[:, None]).argmin(axis=1)
    rows = [row for w in (0, *np.unique(states[nearest])) for row in _hypotheses(states, int(w))]
    kinds = max(len(row[0]) for row in rows)
    used = np.array([np.arange(kinds) < len(row[0]) for row in rows])
    added = np.stack([_padded(row[0], (kinds, len(states), len(states))) for row in rows])
    expected_log_share = np.stack([_padded(row[1], (kinds,)) for row in rows])
    bend = np.stack([_padded(row[2], (kinds, kinds)) for row in rows])
    log_norm = np.array([row[3] for row in rows])
    columns = np.linspace(0, releases + 1, min(releases + 1, _MAX_COLUMNS), endpoint=False)
    first_counts = np.unique(columns.astype(np.int64))
    counts = np.stack([np.add.reduceat(row, first_counts) for row in (noise.never_set, *noise.when_set)])
    added_counts = (added @ counts).transpose(0, 1, 3, 2).reshape(len(rows), -1, len(states))
    added = added.reshape(len(rows), kinds, -1).transpose(0, 2, 1).copy()
    return OverlapHypotheses(used, added, added_counts, expected_log_share, bend, log_norm, counts, first_counts)


def _hypotheses(states: NDArray[np.int64], active: int) -> list[tuple[Array, Array, Array, float]]:
    """For one w: (added, expected_log_share, bend, log_norm) of one hypothesis, or of two if there are second
    differences."""
    everywhere = np.zeros((1, len(states), len(states)))
    everywhere[0, :, -1] = 1.0
    activities = states[(states > 0) & (states <= active)]
    kinds = _kinds(activities)
    total = kinds.sum(axis=1)
    added = np.tensordot(kinds / total[:, None], _one_more_item(states, activities), 1) if active else everywhere[:0]
    second_differences = np.diff(np.eye(max(len(kinds) - 1, 0)), 2, axis=0) if len(kinds) > 3 else np.zeros((0, 0))
    if not active or active < states[-1]:
        added, total = np.concatenate((added, everywhere)), np.append(total, 1.0)
    size, bends = len(added), len(second_differences)
    dirichlet = math.lgamma(SHARE_WEIGHT * size) - size * math.lgamma(SHARE_WEIGHT)
    hypotheses = []
    for deviation in _BEND_DEVIATIONS if bends else _BEND_DEVIATIONS[:1]:
        scaled = second_differences / deviation
        volume = 0.5 * float(np.linalg.slogdet(scaled @ scaled.T)[1]) - math.log(2.0) if bends else 0.0
        bend = _padded(scaled.T @ scaled, (size, size))  # eq. 27
        log_norm = dirichlet + volume + 0.5 * (size - bends) * math.log(2.0 * math.pi)
        hypotheses.append((added, np.log(total), bend, log_norm))
    return hypotheses


def _kinds(activities: NDArray[np.int64]) -> Array:
    """Shape (kinds, activities): the share of each activity in each kind but `everywhere`, not normed (eq. 26)."""
    active = int(activities[-1]) if len(activities) else 0
    if active < 2:
        return np.ones((active, active))
    knots = 2.0 ** np.arange(math.ceil(math.log2(active) - 0.5))
    knots = np.append(knots, active) if active > knots[-1] else knots
    width = np.gradient(activities.astype(np.float64))
    middle = [np.interp(np.log(activities), np.log(knots), row) * width for row in np.eye(len(knots))[1:-1]]
    hats = np.array([np.eye(len(activities))[0], *middle, np.eye(len(activities))[-1]])
    hats[1:-1, [0, -1]] = 0.0
    return np.asarray(hats * activities.astype(np.float64) ** -2)


def _one_more_item(states: NDArray[np.int64], activities: NDArray[np.int64]) -> Array:
    """Shape (activities, states, states): the distribution of a cell's state after one more item of each activity.

    The windows of the item are drawn from w windows, where w is the largest activity (eq. 24). If a number of windows
    is no state, its probability is split between the two neighbouring states. A cell that is set in more than w windows
    holds an item of the kind `everywhere` and keeps its state.
    """
    active = int(activities[-1])
    logs = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, active + 1)))))
    distributions = np.zeros((len(activities), len(states), len(states)))
    distributions[:, states > active, states > active] = 1.0
    possible_states = states[states <= active, None]
    at_once = max(1, _AT_ONCE_NUMBERS // (active + 1))
    for a, distribution in zip(activities, distributions, strict=True):
        new = np.arange(a + 1)
        for low in range(0, len(possible_states), at_once):
            m = possible_states[low : low + at_once]
            row = np.broadcast_to(np.arange(low, low + len(m))[:, None], (len(m), a + 1))
            possible = (new <= active - m) & (a - new <= m)
            left, again = np.where(possible, active - m - new, 0), np.where(possible, m - a + new, 0)
            ways = logs[active - m] - logs[new] - logs[left] + logs[m] - logs[a - new] - logs[again]
            ways += logs[a] + logs[active - a] - logs[active]
            chance = np.exp(np.where(possible, ways, -np.inf))
            # The index of the state m + new, with a fraction.
            after = np.interp(m + new, states, np.arange(len(states)))
            below = np.minimum(after.astype(np.int64), len(states) - 2)
            np.add.at(distribution, (row, below), chance * (1.0 - after + below))
            np.add.at(distribution, (row, below + 1), chance * (after - below))
    return distributions


def _padded(values: Array, shape: tuple[int, ...]) -> Array:
    """`values` in the corner of zeros."""
    full = np.zeros(shape)
    full[tuple(slice(size) for size in values.shape)] = values
    return full
