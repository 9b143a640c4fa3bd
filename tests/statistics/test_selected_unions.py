"""Hours of a key that is withheld in some windows: what is claimed holds, and nothing else is claimed."""

from __future__ import annotations

import math

import numpy as np
from reference.selected import chances
from scipy.stats import binom
from support.memory_topics import Topics
from support.published_topics import VIEWS, closed, question, rolled, span
from support.rollup_runs import QUARTER_MS, release
from support.seeded_coins import SeededCoins

from sfm_stream.answers.rows import rows_of
from sfm_stream.estimation.estimate import Status
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.privacy.flip import flip_bits
from sfm_stream.privacy.selection import select, selection_table
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.wire.codec import decode_rollup

T0 = span(0, 1).start_ms
SHAPE, K = SketchShape(256, 8), flip_threshold_of(4)
SEEDS, WINDOWS, USERS = 400, 4, 60
FALSE_ALARM = 1e-6
"""Of each bound below, by the binomial distribution."""


def hour(seed, table):
    """(distinct users of an hour, its records): each of USERS is there in each window with a chance of 0.4."""
    rng, coins = np.random.default_rng([7, seed]), SeededCoins(7, seed)
    there = rng.random((WINDOWS, USERS)) < 0.4
    records = []
    for window in range(WINDOWS):
        raw = PcsaSketch(SHAPE).add(f"{seed} {user}" for user in np.flatnonzero(there[window]))
        if select(raw.popcount(), table, coins):
            bits = np.unpackbits(flip_bits(raw.bits, K, coins), bitorder="little")
            text = "".join(map(str, bits.tolist()))
            records.append(release(T0 + window * QUARTER_MS, "a", text, k=K, shape=SHAPE))
    return int(there.any(0).sum()), [*records, closed(0, WINDOWS)]


def test_intervals_that_are_ok_hold_and_lower_bounds_claim_no_upper_end():
    """Probability of a false alarm: 3e-6, and none of it where the seeds stay."""
    table = selection_table(1, 1e-9)
    ok, low_holds, would_hold, counts = [], [], [], []
    for seed in range(SEEDS):
        truth, records = hour(seed, table)
        rows = list(rows_of(Topics(records), VIEWS, question("range", span(0, WINDOWS))))
        history = rolled(records)
        rolled_up = list(rows_of(Topics(rollups=history), VIEWS, question("hour")))
        assert len(rows) == len(rolled_up) == (len(records) > 1)
        for row, again in zip(rows, rolled_up, strict=True):
            assert row.estimate.status is again.estimate.status
            found = row.estimate
            counts.append(row.released)
            if row.released == WINDOWS:
                assert found.status in (Status.OK, Status.EMPTY)
                ok.append(found.low <= truth <= found.high)
            else:
                assert (found.status, found.high, again.estimate.high) == (Status.LOWER_BOUND, math.inf, math.inf)
                low_holds.append(found.low <= truth)
                (published,) = (r for r in map(decode_rollup, history) if r.grain == "hour")
                would_hold.append(published.low <= truth <= published.high)
    assert min(len(ok), len(low_holds)) > 80
    assert sum(ok) >= binom.ppf(FALSE_ALARM, len(ok), 0.95)
    assert sum(low_holds) >= binom.ppf(FALSE_ALARM, len(low_holds), 0.95)
    # What was claimed before there was this status: far from 95 %.
    assert sum(would_hold) < binom.ppf(FALSE_ALARM, len(would_hold), 0.95)


def test_the_chances_of_the_simulation_are_those_of_the_package():
    table = selection_table(1, 1e-9)
    assert np.allclose(chances(1, 1e-9)[: len(table)], table.astype(float) / 2**64, rtol=1e-6)
