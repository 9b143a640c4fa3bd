"""Table 1 of the paper as exact laws: inputs are enumerated, nothing is simulated.

What the code draws with is read off its own thresholds; the noise around it comes from the definition of the mechanism.
The laws hold to 1e-12. The operations planted below are wrong and must be caught.
"""

import math
from fractions import Fraction
from functools import reduce
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest
from reference import merge_oracle

from sfm_stream.errors import IncompatibleError, UsageError
from sfm_stream.methods.layouts import BloomFilter, LinearCounting
from sfm_stream.methods.logic import bit_and, bit_not, bit_or, bit_xor, or_by_xor, union, union_by_xor
from sfm_stream.methods.mechanisms import pagh_stausholm, symmetric, xor
from sfm_stream.sketch import merge as merging
from sfm_stream.sketch.hashing import XXH64
from sfm_stream.sketch.mechanism import Mechanism
from sfm_stream.sketch.noisy_bits import NoisyBitmap, NoisyBits
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.sketch.shape import SketchShape

PAIRS = [(1, 1), (0.5, 2), (4, 0.25), (3, 3), (0.01, 8), (12, 12)]


def patterns(k):
    """Shape (k, 2^k): every combination of k bits, a column each."""
    return np.array(list(product([False, True], repeat=k))).T


def outcome_law(operation, mechanisms, monkeypatch):
    """Shape (2^k,): Pr(out = 1 | noisy bits), for every combination of noisy bits, as the code draws it."""
    inputs = [NoisyBits.of_array(m, bits) for m, bits in zip(mechanisms, patterns(len(mechanisms)), strict=True)]
    seen = []

    def spy(count, thresholds, digits):
        seen.append(np.asarray(thresholds, np.float64) / GRID)
        return np.zeros(count, np.bool_)

    with monkeypatch.context() as patch:
        patch.setattr(merging, "draw", spy)
        low = operation(inputs).array()
    if not seen:
        return low.astype(float)
    # The draw gave zeros: where the result shows ones the operation negates it.
    return np.where(low, 1 - seen[0], seen[0])


def chance_of_one(mechanism, lit):
    return (mechanism.p_threshold if lit else mechanism.q_threshold) / GRID


def law_of(result, mechanisms, true_bits):
    """Pr(out = 1) for given true bits, over all noisy bits."""
    total = 0.0
    for number, noisy in enumerate(product([False, True], repeat=len(mechanisms))):
        weight = 1.0
        for mechanism, lit, shown in zip(mechanisms, true_bits, noisy, strict=True):
            one = chance_of_one(mechanism, lit)
            weight *= one if shown else 1 - one
        total += weight * result[number]
    return total


def or_epsilon(epsilons):
    return -math.log1p(-math.prod(-math.expm1(-e) for e in epsilons))


def xor_epsilon(epsilons):
    first, second = epsilons
    return math.log((1 + math.exp(first + second)) / (math.exp(first) + math.exp(second)))


TABLE = {
    "or": (bit_or, any, or_epsilon),
    "and": (bit_and, all, or_epsilon),
    "xor": (lambda inputs: bit_xor(*inputs), lambda bits: bits[0] != bits[1], xor_epsilon),
}


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("epsilons", PAIRS)
def test_table_1_pairs(name, epsilons, monkeypatch):
    operation, truth, formula = TABLE[name]
    require_law(operation, truth, formula(epsilons), epsilons, monkeypatch)


@pytest.mark.parametrize("name", ["or", "and"])
@pytest.mark.parametrize("epsilons", [(1, 2, 3), (0.5, 0.5, 4, 2), (2, 2, 2, 2)])
def test_k_vectors_at_once(name, epsilons, monkeypatch):
    operation, truth, formula = TABLE[name]
    require_law(operation, truth, formula(epsilons), epsilons, monkeypatch)
    pairwise = reduce(lambda total, e: or_epsilon((total, e)), epsilons)
    assert formula(epsilons) == pytest.approx(pairwise, rel=1e-12)


def require_law(operation, truth, epsilon, epsilons, monkeypatch):
    """The law of the result is that of M_sym at epsilon* over the operation on the true bits."""
    mechanisms = [symmetric(e) for e in epsilons]
    result = outcome_law(operation, mechanisms, monkeypatch)
    q = 1 / (math.exp(epsilon) + 1)
    for bits in product([False, True], repeat=len(epsilons)):
        wanted = 1 - q if truth(bits) else q
        assert law_of(result, mechanisms, bits) == pytest.approx(wanted, abs=1e-12)
    inputs = [NoisyBits.of_array(m, np.zeros(8, np.bool_)) for m in mechanisms]
    assert operation(inputs).mechanism.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert operation(inputs).mechanism.symmetric


@pytest.mark.parametrize(
    "epsilons", [*combinations_with_replacement((0.1, 1, 4), 3), (0.5, 2), (8, 0.1, 1, 3)], ids=str
)
@pytest.mark.parametrize(("operation", "oracle"), [(bit_or, "one_probabilities"), (bit_and, "and_probabilities")])
def test_coins_are_the_kronecker_form_of_the_paper(operation, oracle, epsilons, monkeypatch):
    mechanisms = [symmetric(e) for e in epsilons]
    law = outcome_law(operation, mechanisms, monkeypatch)
    exact = getattr(merge_oracle, oracle)([Fraction(m.q_threshold, GRID) for m in mechanisms])
    assert law == pytest.approx([float(value) for value in exact.values()], abs=1e-12)
    # Where no input speaks for the rarer outcome there is no coin at all.
    assert law[0] == 0.0 if operation is bit_or else law[-1] == 1.0


def no_coins(truth):
    """The operation on the noisy bits themselves, with the mechanism that the randomized one would state."""

    def operation(inputs):
        flip = merging.merged_threshold([bits.mechanism.q_threshold for bits in inputs])
        return NoisyBits.of_array(Mechanism(GRID - flip, flip), reduce(truth, (bits.array() for bits in inputs)))

    return operation


def stronger_xor(inputs):
    found = bit_xor(*inputs)
    flip = min(bits.mechanism.q_threshold for bits in inputs)
    return NoisyBits(Mechanism(GRID - flip, flip), found.length, found.packed)


def not_xor(inputs):
    return bit_not(bit_xor(*inputs))


WRONG = {
    "or of the noisy bits": ("or", no_coins(np.logical_or)),
    "and of the noisy bits": ("and", no_coins(np.logical_and)),
    "and for or": ("or", bit_and),
    "or for and": ("and", bit_or),
    "nor for and": ("and", lambda inputs: bit_or([bit_not(bits) for bits in inputs])),
    "or of complements": ("or", lambda inputs: bit_not(bit_and(inputs))),
    "noise of the other input": ("or", lambda inputs: bit_or(swapped_noise(inputs))),
    "xor with too little noise": ("xor", stronger_xor),
    "xor negated": ("xor", not_xor),
}


def swapped_noise(inputs):
    return [
        NoisyBits(bits.mechanism, other.length, other.packed)
        for bits, other in zip(inputs, reversed(inputs), strict=True)
    ]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_operation_is_caught(wrong, monkeypatch):
    name, operation = WRONG[wrong]
    _, truth, formula = TABLE[name]
    with pytest.raises(AssertionError):
        require_law(operation, truth, formula((1, 3)), (1, 3), monkeypatch)


def test_a_wrong_claim_of_noise_is_caught(monkeypatch):
    for name in TABLE:
        operation, truth, formula = TABLE[name]
        with pytest.raises(AssertionError):
            require_law(operation, truth, formula((1, 3)) * (1 + 1e-10), (1, 3), monkeypatch)


@pytest.mark.parametrize("kinds", [(xor, xor), (pagh_stausholm, pagh_stausholm), (xor, pagh_stausholm)])
@pytest.mark.parametrize("epsilons", [(1, 1), (0.5, 4), (0.25, 0.25)])
def test_or_by_xor_is_a_merge_where_p_is_a_half(kinds, epsilons, monkeypatch):
    mechanisms = [kind(e) for kind, e in zip(kinds, epsilons, strict=True)]
    result = outcome_law(or_by_xor, mechanisms, monkeypatch)
    q1, q2 = (m.q_threshold / GRID for m in mechanisms)
    wanted = q1 * (1 - q2) + q2 * (1 - q1)
    for bits in product([False, True], repeat=2):
        assert law_of(result, mechanisms, bits) == pytest.approx(0.5 if any(bits) else wanted, abs=1e-12)
    merged = or_by_xor([NoisyBits.of_array(m, np.zeros(8, np.bool_)) for m in mechanisms])
    assert merged.mechanism.p_threshold == GRID // 2
    assert merged.mechanism.epsilon == pytest.approx(or_epsilon([m.epsilon for m in mechanisms]), rel=1e-9)


@pytest.mark.parametrize("kinds", [(xor, xor, xor), (xor, pagh_stausholm, xor, xor)])
def test_or_by_xor_of_k_vectors_at_once(kinds, monkeypatch):
    mechanisms = [kind(e) for kind, e in zip(kinds, (1, 0.5, 4, 2), strict=False)]
    result = outcome_law(or_by_xor, mechanisms, monkeypatch)
    merged = or_by_xor([NoisyBits.of_array(m, np.zeros(8, np.bool_)) for m in mechanisms]).mechanism
    for bits in product([False, True], repeat=len(kinds)):
        assert law_of(result, mechanisms, bits) == pytest.approx(
            merged.p_threshold / GRID if any(bits) else merged.q_threshold / GRID
        )
    assert merged.epsilon == pytest.approx(
        reduce(lambda total, m: or_epsilon((total, m.epsilon)), mechanisms, math.inf)
    )


def test_noise_of_an_xor_is_the_nearest_integer_in_any_order():
    rng = np.random.default_rng(7)
    for count in (2, 3, 5):
        mechanisms = [xor(e) for e in rng.uniform(0.01, 12, count).tolist()]
        exact = GRID * merge_oracle.odd_probability([Fraction(m.q_threshold, GRID) for m in mechanisms])
        inputs = [NoisyBits.of_array(m, rng.random(64) < 0.5) for m in mechanisms]
        results = {or_by_xor(order) for order in permutations(inputs)}
        assert len(results) == 1
        assert abs(results.pop().mechanism.q_threshold - exact) <= Fraction(1, 2)
    first, second = (NoisyBits.of_array(symmetric(e), rng.random(64) < 0.5) for e in (0.3, 5))
    assert bit_xor(first, second) == bit_xor(second, first)
    qs = [Fraction(bits.mechanism.q_threshold, GRID) for bits in (first, second)]
    exact = GRID * merge_oracle.odd_probability(qs)
    assert abs(bit_xor(first, second).mechanism.q_threshold - exact) <= Fraction(1, 2)


def test_not_commutes_with_symmetric_noise_only():
    bits = NoisyBits.of_array(symmetric(1), np.array([True, False, True]))
    assert bit_not(bits).array().tolist() == [False, True, False]
    assert bit_not(bits).mechanism == bits.mechanism
    for kind in (xor, pagh_stausholm):
        with pytest.raises(UsageError, match="symmetric"):
            bit_not(NoisyBits.of_array(kind(1), np.zeros(8, np.bool_)))


def test_what_has_no_merge_is_refused():
    sym, half = (NoisyBits.of_array(kind(1), np.zeros(8, np.bool_)) for kind in (symmetric, xor))
    for operation in (bit_or, bit_and, lambda inputs: bit_xor(*inputs)):
        with pytest.raises(UsageError, match="symmetric"):
            operation([sym, half])
    with pytest.raises(UsageError, match="1/2"):
        or_by_xor([sym, half])
    with pytest.raises(UsageError, match="no inputs"):
        bit_or([])
    with pytest.raises(IncompatibleError):
        bit_or([sym, NoisyBits.of_array(symmetric(1), np.zeros(16, np.bool_))])
    layouts = [
        NoisyBitmap(LinearCounting(64), name, NoisyBits.of_array(symmetric(1), np.zeros(64, np.bool_)))
        for name in ("xxh64", "other")
    ]
    with pytest.raises(IncompatibleError, match="bitmaps differ"):
        union(layouts)
    with pytest.raises(UsageError, match="1/2"):
        union_by_xor(layouts)
    for kind, merge in ((symmetric, union), (xor, union_by_xor)):
        bits = NoisyBits.of_array(kind(1), np.zeros(64, np.bool_))
        with pytest.raises(IncompatibleError, match="bitmaps differ"):
            merge([NoisyBitmap(layout, "xxh64", bits) for layout in (LinearCounting(64), BloomFilter(64, 1))])
        with pytest.raises(UsageError, match="no inputs"):
            merge([])


def test_vectors_of_other_lengths_are_refused_by_every_operation():
    for kind, operations in (
        (symmetric, (bit_or, bit_and, lambda inputs: bit_xor(*inputs))),
        (xor, (or_by_xor,)),
    ):
        inputs = [NoisyBits.of_array(kind(1), np.zeros(length, np.bool_)) for length in (8, 9)]
        for operation in operations:
            with pytest.raises(IncompatibleError, match="8 bits against 9"):
                operation(inputs)


def test_a_single_input_is_returned_as_it_is():
    only = NoisyBits.of_array(symmetric(1), np.array([True, False, True]))
    half = NoisyBits.of_array(xor(1), np.array([True, False, True]))
    assert bit_or([only]) == bit_and([only]) == only
    assert or_by_xor([half]) == half


def test_the_order_of_inputs_does_not_matter():
    rng = np.random.default_rng(5)
    inputs = [NoisyBits.of_array(symmetric(e), rng.random(512) < 0.5) for e in (1, 2, 1, 3)]
    for operation in (bit_or, bit_and):
        assert len({operation(order) for order in permutations(inputs)}) == 1


def test_the_union_of_bitmaps_is_the_merge_of_sketches(monkeypatch):
    """The same thresholds in every cell; only the coins are other ones."""
    shape, rng, seen = SketchShape(64, 8), np.random.default_rng(6), []
    sketches = [SfmSketch(shape, symmetric(e).q_threshold, "xxh64", rng.bytes(shape.nbytes)) for e in (1, 2, 2)]

    def spy(count, thresholds, digits):
        seen.append(thresholds)
        return np.zeros(count, np.bool_)

    monkeypatch.setattr(merging, "draw", spy)
    merged = merging.merge(sketches)
    joined = union([NoisyBitmap.of(sketch) for sketch in sketches])
    assert np.array_equal(seen[0], seen[1])
    assert (joined.layout, joined.hash) == (merged.shape, merged.hash)
    assert joined.mechanism.q_threshold == merged.flip_threshold


def test_mechanisms_and_bits_are_checked():
    for lit, empty in ((1, 2), (GRID, 1), (5, 0)):
        with pytest.raises(UsageError):
            Mechanism(lit, empty)
    with pytest.raises(UsageError):
        NoisyBits(symmetric(1), 9, b"\0")
    with pytest.raises(UsageError, match="past 9"):
        NoisyBits(symmetric(1), 9, b"\0\2")
    raw = PcsaSketch(SketchShape(64, 8), XXH64)
    with pytest.raises(UsageError):
        NoisyBitmap(raw.shape, "xxh64", NoisyBits(symmetric(1), 8, b"\0"))
