"""How `sfm_stream.methods` is used, for mypy: each of its names with the types that a user's own checker sees."""

from __future__ import annotations

from typing import assert_type

from sfm_stream import Estimate, SketchShape, estimate
from sfm_stream.methods import (
    BitmapLayout,
    BloomFilter,
    LinearCounting,
    LiquidLegions,
    Mechanism,
    MechanismFamily,
    NoisyBitmap,
    NoisyBits,
    RawBitmap,
    bit_and,
    bit_not,
    bit_or,
    bit_xor,
    or_by_xor,
    pagh_stausholm,
    privatize,
    symmetric,
    union,
    union_by_xor,
    xor,
)


def mechanisms() -> None:
    families: list[MechanismFamily] = [symmetric, xor, pagh_stausholm]
    for family in families:
        mechanism = family(2)
        assert_type(mechanism, Mechanism)
        assert_type((mechanism.p_threshold, mechanism.q_threshold), tuple[int, int])
        assert_type(mechanism.epsilon, float)


def bitmaps() -> None:
    layouts: list[BitmapLayout] = [
        SketchShape(64, 8),
        LinearCounting(512),
        BloomFilter(512, 2),
        LiquidLegions(512, 8.0),
    ]
    for layout in layouts:
        secret = RawBitmap(layout).add(range(100))
        assert_type(secret, RawBitmap)
        private = privatize(secret, 2)
        assert_type(private, NoisyBitmap)
        assert_type(private.noisy_bits, NoisyBits)
        assert_type(estimate(private), Estimate)


def logic() -> None:
    layout = LinearCounting(512)
    first, second = (privatize(RawBitmap(layout).add(range(at, at + 100)), 2) for at in (0, 50))
    bits = [first.noisy_bits, second.noisy_bits]
    assert_type(bit_or(bits), NoisyBits)
    assert_type(bit_and(bits), NoisyBits)
    assert_type(bit_xor(*bits), NoisyBits)
    assert_type(bit_not(bits[0]), NoisyBits)
    assert_type(union([first, second]), NoisyBitmap)
    halves = [privatize(RawBitmap(layout).add(range(at, at + 100)), 2, xor) for at in (0, 50)]
    assert_type(union_by_xor(halves), NoisyBitmap)
    assert_type(or_by_xor([half.noisy_bits for half in halves]), NoisyBits)
