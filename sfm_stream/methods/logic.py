"""Logic on noisy bits (paper, sections "Merging" and "General Boolean Operations"), bit by bit.

Each operation gives the result for the true bits, made noisy by a mechanism of its own. `mechanism.epsilon` of the
result is the paper's epsilon*: it measures noise and is no budget. All of this is post-processing and costs no privacy.

    or, and    randomized, under M_sym: e^-eps* = e^-eps1 + e^-eps2 - e^-(eps1 + eps2)
    xor        of the noisy bits, under M_sym: e^eps* = (1 + e^(eps1 + eps2)) / (e^eps1 + e^eps2)
    not        of the noisy bits, under M_sym: the same epsilon
    or         as the xor of the noisy bits, where p = 1/2 (M_xor): the same eps* as the randomized one

The or of two bitmaps is the bitmap of the union of their sets. The results of the other operations are bitmaps of no
set, so no number of items is estimated from them alone; estimation/pair.py uses both sketches.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import IncompatibleError, UsageError
from sfm_stream.sketch.bernoulli import Digits
from sfm_stream.sketch.mechanism import Mechanism
from sfm_stream.sketch.merge import merged_ones, merged_threshold
from sfm_stream.sketch.noisy_bits import NoisyBitmap, NoisyBits, require_draws_of_their_own
from sfm_stream.sketch.sfm import GRID


def bit_or(inputs: Sequence[NoisyBits], digits: Digits | None = None) -> NoisyBits:
    """The or of any number of vectors, by the randomized merge (paper, thm. sym-merge-general).

    Symmetric mechanisms only. digits: coins other than the ones that follow from the inputs.
    Raises UsageError, IncompatibleError.
    """
    _require(inputs, "or", lambda mechanism: mechanism.symmetric, "a symmetric mechanism")
    if len(inputs) == 1:
        return inputs[0]
    ones: dict[int, NDArray[np.int64]] = {}
    for bits in inputs:
        threshold = bits.mechanism.q_threshold
        ones[threshold] = ones.get(threshold, np.zeros(bits.length, np.int64)) + bits.array()
    releases = Counter(bits.mechanism.q_threshold for bits in inputs)
    merged = merged_threshold([bits.mechanism.q_threshold for bits in inputs])
    groups = [(threshold, releases[threshold], ones[threshold]) for threshold in sorted(ones)]
    drawn = merged_ones(groups, merged, digits, [bits.digest() for bits in inputs])
    return NoisyBits.of_array(Mechanism.flipping(merged), drawn)


def bit_and(inputs: Sequence[NoisyBits], digits: Digits | None = None) -> NoisyBits:
    """The and of any number of vectors, by De Morgan's law (paper, cor. and-sym-rr-merge). Arguments as for bit_or."""
    return bit_not(bit_or([bit_not(bits) for bits in inputs], digits))


def bit_xor(first: NoisyBits, second: NoisyBits) -> NoisyBits:
    """The xor of two vectors, without coins (paper, lem. xor-msym). Symmetric mechanisms only."""
    inputs = [first, second]
    _require(inputs, "xor", lambda mechanism: mechanism.symmetric, "a symmetric mechanism")
    return _xored(inputs, Mechanism.flipping(_odd([bits.mechanism.q_threshold for bits in inputs])))


def bit_not(bits: NoisyBits) -> NoisyBits:
    """The complement (paper, lem. not-msym). Symmetric mechanisms only."""
    _require([bits], "not", lambda mechanism: mechanism.symmetric, "a symmetric mechanism")
    return NoisyBits.of_array(bits.mechanism, ~bits.array())


def or_by_xor(inputs: Sequence[NoisyBits]) -> NoisyBits:
    """The or of any number of vectors as the xor of their noisy bits, without coins (paper, thm. xor-rr-merge).

    Only where every p is 1/2, the one case in which a deterministic merge exists (paper, thm.
    unique-deterministic-merge). Raises UsageError, IncompatibleError.
    """
    _require(inputs, "or by xor", lambda mechanism: mechanism.p_threshold == GRID // 2, "p = 1/2")
    return _xored(inputs, Mechanism(GRID // 2, _odd([bits.mechanism.q_threshold for bits in inputs])))


def union(bitmaps: Sequence[NoisyBitmap], digits: Digits | None = None) -> NoisyBitmap:
    """The private bitmap of the union of the sets, for symmetric mechanisms. Raises as bit_or."""
    return _bitmap(bitmaps, bit_or([bitmap.noisy_bits for bitmap in bitmaps], digits))


def union_by_xor(bitmaps: Sequence[NoisyBitmap]) -> NoisyBitmap:
    """The same for mechanisms with p = 1/2. Raises as or_by_xor."""
    return _bitmap(bitmaps, or_by_xor([bitmap.noisy_bits for bitmap in bitmaps]))


def _bitmap(bitmaps: Sequence[NoisyBitmap], noisy: NoisyBits) -> NoisyBitmap:
    first = bitmaps[0]
    for other in bitmaps[1:]:
        if (first.layout, first.hash) != (other.layout, other.hash):
            raise IncompatibleError(
                f"union: bitmaps differ, {first.layout} {first.hash} against {other.layout} {other.hash}"
            )
    return NoisyBitmap(first.layout, first.hash, noisy)


def _odd(thresholds: Sequence[int]) -> int:
    """2^64 times the probability that an odd number of independent coins shows a one, to the nearest integer."""
    even = math.prod(GRID - 2 * threshold for threshold in thresholds)
    scale = GRID ** (len(thresholds) - 1)
    return int((GRID * scale - even + scale) // (2 * scale))


def _xored(inputs: Sequence[NoisyBits], mechanism: Mechanism) -> NoisyBits:
    bits = reduce(np.logical_xor, (bits.array() for bits in inputs))
    return NoisyBits.of_array(mechanism, bits)


def _require(inputs: Sequence[NoisyBits], what: str, fits: Callable[[Mechanism], bool], needed: str) -> None:
    if not inputs:
        raise UsageError(f"{what}: no inputs")
    for bits in inputs:
        if bits.length != inputs[0].length:
            raise IncompatibleError(f"{what}: {inputs[0].length} bits against {bits.length}")
        if not fits(bits.mechanism):
            raise UsageError(f"{what}: this takes {needed}, and these bits went through another one")
    require_draws_of_their_own(what, inputs)
