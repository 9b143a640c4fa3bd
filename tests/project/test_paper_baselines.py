"""What the paper compares with, against slow versions written from the definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from datasketches import hll_sketch, tgt_hll_type
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmarks.paper.baselines import fm85, hll
from benchmarks.paper.baselines.pagh_stausholm import READINGS, RELATIVE, intersect
from benchmarks.paper.cells import LEVELS, SeededCoins
from benchmarks.paper.items import addresses_of_csv, distinct_integers, synthetic_addresses
from sfm_stream.methods.mechanisms import pagh_stausholm, xor
from sfm_stream.methods.randomized_response import privatize
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.shape import SketchShape

SMALL = SketchShape(64, 10)
MISSED = {
    "relative": lambda f, e: abs(f - e) / e,
    "additive": lambda f, e: abs(f - e),
    "relative zeros": lambda f, e: abs(f - e) / (1 - e),
    "deviations": lambda f, e: abs(f - e) / np.sqrt(e * (1 - e)),
}
"""The tolerance that a level asks for: observed fraction f of ones, expected e."""
reading = pytest.mark.parametrize("reading", READINGS, ids=lambda reading: reading.name)


# Pagh and Stausholm


def tolerances(ones, p, q, reading):
    """(n, the smallest tolerance at which n is in the interval of every level), by trying n on a fine grid."""
    n = np.concatenate(([0.0], np.geomspace(0.1, 1e7, 200_001)))
    wanted = np.zeros(n.size)
    for j, count in enumerate(ones, 1):
        rate = 2.0 ** -min(j, SMALL.levels - 1) / SMALL.buckets
        expected = p - (p - q) * (1 - rate) ** n
        wanted = np.maximum(wanted, MISSED[reading.name.split(",")[0]](count / SMALL.buckets, expected))
    return n, wanted


@reading
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("n", [0, 20, 3000])
def test_the_interval_is_what_a_search_over_n_and_beta_finds(reading, epsilon, n):
    rng = np.random.default_rng([n, int(10 * epsilon)])
    mechanism = pagh_stausholm(epsilon)
    p, q = mechanism.channel.p, mechanism.channel.q
    for _ in range(5):
        raw = PcsaSketch(SMALL).add(distinct_integers(rng, n))
        ones = privatize(raw, epsilon, pagh_stausholm, SeededCoins(rng)).ones()
        found = intersect(SMALL, ones[None], np.array([p]), np.array([q]), reading)
        grid, wanted = tolerances(ones, p, q, reading)
        beta = wanted.min()
        if reading.step:
            beta = math.ceil(beta / reading.step) * reading.step
        assert found.tolerance[0] == pytest.approx(beta, rel=1e-3, abs=1e-6)
        inside = grid[wanted <= found.tolerance[0] * (1 + 1e-3) + 1e-6]
        assert inside.min() * 0.99 - 0.2 <= found.low[0] <= inside.max() * 1.01 + 0.2
        assert found.low[0] <= found.estimate[0]
        if found.high[0] < grid[-1]:
            assert inside.min() * 0.99 - 0.2 <= found.estimate[0] <= found.high[0] <= inside.max() * 1.01 + 0.2


@given(
    ones=arrays(np.int64, (3, SMALL.levels), elements=st.integers(0, SMALL.buckets)),
    q=st.floats(0.001, 0.45),
    reading=st.sampled_from(READINGS),
)
def test_every_sketch_has_an_estimate(ones, q, reading):
    """Also ones that no set would make: never NaN, never negative, and finite."""
    found = intersect(SMALL, ones, np.full(3, 0.5), np.full(3, q), reading)
    assert np.all(np.isfinite(found.estimate))
    assert np.all(found.estimate >= 0.0)
    assert np.all(found.low <= found.high)


@reading
def test_a_sketch_without_noise_in_its_fractions_gives_n(reading):
    """Fractions exactly as expected leave a tolerance of 0, and n."""
    shape, q, n = SketchShape(4096, 24), 0.2, 12_345.0
    expected = shape.buckets * (0.5 - (0.5 - q) * (1 - shape.rho) ** n)
    found = intersect(shape, expected[None], np.array([0.5]), np.array([q]), reading)
    assert found.estimate[0] == pytest.approx(n, rel=1e-6 if reading.step is None else 0.1)
    assert found.tolerance[0] == pytest.approx(reading.step or 0.0, abs=1e-9)


def test_saturated_levels_leave_the_lower_end():
    """Every level shows more ones than any n would make: the upper end is infinite, the estimate finite."""
    ones = np.full((1, SMALL.levels), 0.6 * SMALL.buckets)
    found = intersect(SMALL, ones, np.array([0.5]), np.array([0.1]), RELATIVE)
    assert np.isinf(found.high[0])
    assert found.estimate[0] == found.low[0] > 1000.0


def test_tightened_and_prescribed_noise_are_one_mechanism():
    """M_xor(epsilon) = M_PS(2 (e^epsilon - 1)) (paper, cor. equivalent-eps)."""
    for epsilon in (0.25, 1.0, 2.0):
        loose = pagh_stausholm(2.0 * math.expm1(epsilon))
        assert xor(epsilon).channel.q == pytest.approx(loose.channel.q, rel=1e-12)


# FM85


def naive_fm85(items):
    """Bucket by bucket from the hash: the mean over the buckets of the lowest level without an item."""
    import xxhash

    seen = [set() for _ in range(SMALL.buckets)]
    for item in items.tolist():
        digest = xxhash.xxh64_intdigest(item.to_bytes(8, "little", signed=True))
        rest = digest & ((1 << 58) - 1)
        zeros = (rest & -rest).bit_length() - 1 if rest else 58
        seen[digest >> 58].add(min(zeros, SMALL.levels - 1))
    lowest = [next(level for level in range(SMALL.levels + 1) if level not in levels) for levels in seen]
    return SMALL.buckets / 0.77351 * 2 ** (sum(lowest) / SMALL.buckets)


@pytest.mark.parametrize("n", [0, 10, 1000, 200_000])
def test_fm85_is_the_mean_of_the_lowest_zeros(n):
    """At 200,000 some buckets are full."""
    items = distinct_integers(np.random.default_rng(n), n)
    assert fm85.estimate(PcsaSketch(SMALL).add(items).bits, SMALL) == pytest.approx(naive_fm85(items), rel=1e-12)


def test_fm85_is_right_within_its_error():
    shape = SketchShape(4096, LEVELS)
    items = distinct_integers(np.random.default_rng(5), 300_000)
    assert fm85.estimate(PcsaSketch(shape).add(items).bits, shape) == pytest.approx(300_000, rel=5 * 0.78 / 64)


# HLL


def registers(sketch):
    """An HLL_8 sketch has one byte a register, behind 40 bytes of preamble."""
    return sketch.serialize_updatable()[40:]


@pytest.mark.parametrize("lg", [7, 8, 10, 12])
def test_a_folded_sketch_is_the_one_that_was_fed(lg):
    items = distinct_integers(np.random.default_rng(lg), 30_000)
    top, fed = (hll_sketch(size, tgt_hll_type.HLL_8) for size in (12, lg))
    for item in items.tolist():
        top.update(item)
        fed.update(item)
    folded = hll.folded(top, lg)
    assert len(registers(fed)) == 1 << lg
    assert registers(folded) == registers(fed) == registers(hll.merged(folded))
    (estimate,) = hll.estimates(items, [lg])
    assert hll.merged(folded).get_estimate() == hll.merged(fed).get_estimate() == estimate


def test_hll_estimates_from_its_registers():
    """Of a sketch that was only updated DataSketches gives another, better estimate: not the paper's HLL."""
    items = distinct_integers(np.random.default_rng(3), 50_000)
    errors = []
    for part in np.split(items, 50):
        fed = hll_sketch(7, tgt_hll_type.HLL_8)
        for item in part.tolist():
            fed.update(item)
        assert hll.merged(fed).get_estimate() != fed.get_estimate()
        errors.append(hll.estimates(part, [7])[0] / part.size - 1)
    # 50 trials: the root mean square is known to 10 %, and 4 of these are allowed.
    assert math.sqrt(np.mean(np.square(errors))) == pytest.approx(1.04 / math.sqrt(128), rel=0.4)


# Data


def test_integers_are_distinct_and_repeatable():
    first, second = (distinct_integers(np.random.default_rng(1), 200_000) for _ in range(2))
    assert np.unique(first).size == 200_000
    assert np.array_equal(first, second)
    assert not np.intersect1d(first, distinct_integers(np.random.default_rng(2), 200_000)).size


def test_addresses_of_a_file_are_its_distinct_ones(tmp_path):
    rows = [f"{name},2011,{day}" for day in range(3) for name in ("1abc", "1def", "1ghi")]
    (tmp_path / "heist.csv").write_text("address,year,day\n" + "\n".join(rows) + "\n")
    found = addresses_of_csv(tmp_path / "heist.csv", tmp_path / "out")
    assert found.count == 3
    assert found.name.startswith("heist.csv ")
    (tmp_path / "heist.csv").write_text("address,year,day\n" + "\n".join(rows[1:8]) + "\n")
    assert addresses_of_csv(tmp_path / "heist.csv", tmp_path / "out") == found
    (tmp_path / "heist.csv").write_text("address,year,day\n" + "\n".join(rows[:2]) + "\n")
    assert addresses_of_csv(tmp_path / "heist.csv", tmp_path / "out").name != found.name


def test_synthetic_addresses_are_as_many_as_asked_and_always_the_same(tmp_path):
    first, second = (synthetic_addresses(tmp_path / name, 1234) for name in ("a", "b"))
    assert first.count == 1234
    assert np.array_equal(np.load(first.path), np.load(second.path))


def test_each_trial_hashes_the_addresses_anew(tmp_path):
    addresses = synthetic_addresses(tmp_path, 1000)
    one, again, other = (addresses.rekeyed(np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.intersect1d(one, other).size
    assert np.unique(other).size == 1000
