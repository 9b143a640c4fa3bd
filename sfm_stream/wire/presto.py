"""Writing and reading the bytes of Presto's SFMSKETCH, and the estimator that Presto runs on them.

Little-endian, no padding::

    offset  size  type     field
    0       1     int8     tag, always 7
    1       4     int32    index bits n; buckets = 2^n
    5       4     int32    levels P
    9       8     float64  flip probability p; 0.0 means a raw, secret bitmap
    17      4     int32    bitmap length L
    21      L     bytes    bitmap: cell = level * 2^n + bucket is bit cell & 7 of byte cell >> 3;
                           trailing zero bytes are dropped

The bytes hold neither the hash nor the history of a sketch; docs/presto.md says what follows from that. A raw sketch
can be read, never written. tests/golden/presto.json fixes the layout, the cells and the estimates.
"""

from __future__ import annotations

import math
import struct

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import FormatError, ShapeError, UsageError
from sfm_stream.sketch.hashing import XXH64, ItemHash
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.sketch.shape import SketchShape

__all__ = ["cardinality", "decode", "encode", "presto_cardinality", "probability", "read_raw"]

_HEAD = struct.Struct("<biidi")
_TAG = 7
_MANTISSA_BITS = 53
_MAX_ITERATIONS, _SMALLEST_STEP = 1000, 0.1
_JAVA_LONG_MAX = (1 << 63) - 1


def encode(sketch: SfmSketch) -> bytes:
    """The sketch as Presto reads it: 21 bytes and the bitmap without its trailing zero bytes.

    p is flip_threshold / 2^64, rounded down to a float64, so that ln(1/p - 1) is never less than the epsilon of the
    release; `decode` gives back a threshold that keeps the leading 53 bits only. The hash is not part of the bytes.
    Raises TypeError for a raw sketch, FormatError for pure noise (p = 0.5), which the format cannot hold.
    """
    if not isinstance(sketch, SfmSketch):
        raise TypeError(f"only a private SfmSketch can be exported, got {type(sketch).__name__}")
    if sketch.flip_threshold == GRID // 2:
        raise FormatError("flip probability", "0.5 (pure noise) is outside Presto's [0, 0.5)")
    bitmap = sketch.bits.rstrip(b"\0")
    shape = sketch.shape
    return _HEAD.pack(_TAG, shape.bucket_bits, shape.levels, probability(sketch.flip_threshold), len(bitmap)) + bitmap


def decode(blob: bytes, hash: str = "xxh64") -> SfmSketch:
    """The private sketch in Presto's bytes; its flip threshold is floor(p 2^64), exact for every p >= 2^-12.

    hash: the public name of the item hash, which only the caller can know. A sketch that Presto itself merged decodes
    like any other, bias included. Raises FormatError naming the field: bytes that Presto's writer does not produce, a
    raw sketch (p = 0: see `read_raw`), p < 2^-64, or a shape outside 16..65536 buckets and 2..48 levels.
    """
    shape, p, bitmap = _read(blob)
    if p == 0.0:
        raise FormatError("flip probability", "0 marks a raw, secret sketch where a private one is expected")
    flip_threshold = int(p * float(GRID))
    if flip_threshold < 1:
        raise FormatError("flip probability", f"{p} is below 2^-64, the smallest one supported")
    return SfmSketch(shape, flip_threshold, hash, bitmap)


def read_raw(blob: bytes, item_hash: ItemHash = XXH64) -> PcsaSketch:
    """The SECRET raw sketch in Presto's non-private bytes (p = 0), for instance to flip it here.

    item_hash: the hash the sketch was made with, which the bytes do not say. Raises FormatError as `decode` does, and
    for a private sketch.
    """
    shape, p, bitmap = _read(blob)
    if p != 0.0:
        raise FormatError("flip probability", f"{p} marks a private sketch where a raw one is expected")
    return PcsaSketch.of_bits(shape, np.frombuffer(bitmap, np.uint8), item_hash)


def probability(flip_threshold: int) -> float:
    """flip_threshold / 2^64 rounded down to a float64: the flip probability that stands in the bytes. 1..2^63."""
    spare = max(0, flip_threshold.bit_length() - _MANTISSA_BITS)
    return ((flip_threshold >> spare) << spare) / GRID


def cardinality(sketch: SfmSketch) -> int:
    """The number that Presto's `cardinality` returns for `encode(sketch)`; see `presto_cardinality`."""
    return presto_cardinality(np.frombuffer(sketch.bits, np.uint8), sketch.shape, probability(sketch.flip_threshold))


def presto_cardinality(bits: NDArray[np.uint8], shape: SketchShape, p: float) -> int:
    """Presto's count, an integer >= 0, of a private or a raw bitmap. Use it to compare systems, not to count.

    bits: packed, shape (shape.nbytes,). p: flip probability in [0, 0.5), 0 for a raw bitmap. Newton on the composite
    likelihood from n = 1 until a step is at most 0.1. Three faults of Presto are kept: the last level has half of its
    true probability, an estimate that diverges gives 0 or noise, and no error is reported. Bits are summed one by one
    in Presto's order, since the last digit of a sum decides the count of a saturated bitmap. Raises UsageError.
    """
    if bits.shape != (shape.nbytes,):
        raise UsageError(f"bits: {bits.shape} bytes where {shape} has {shape.nbytes}")
    if not 0.0 <= p < 0.5:
        raise UsageError(f"p: {p} is outside [0, 0.5)")
    ones = np.unpackbits(bits, bitorder="little").reshape(shape.levels, shape.buckets).view(np.bool_)
    guess, step, rounds = 1.0, math.inf, 0
    while abs(step) > _SMALLEST_STEP and rounds < _MAX_ITERATIONS:
        first, second = _derivatives(guess, ones, p)
        step = _ratio(-first, second)
        guess += step
        rounds += 1
    if not guess > 0.0:  # NaN, too
        return 0
    if guess >= _JAVA_LONG_MAX:
        return _JAVA_LONG_MAX
    whole = math.floor(guess)
    # As Java rounds; floor(guess + 0.5) rounds twice and is one off for odd numbers beyond 2^52.
    return whole + (guess - whole >= 0.5)


def _derivatives(n: float, ones: NDArray[np.bool_], p: float) -> tuple[float, float]:
    """First and second derivative of the log likelihood at n (paper, section "Cardinality Estimation")."""
    levels, buckets = ones.shape
    if_one, if_zero = np.empty((2, levels, 1)), np.empty((2, levels, 1))
    for level in range(levels):
        cell = math.pow(2.0, -(level + 1)) / buckets
        if_one[:, level, 0] = _term(n, cell, p, -1.0)
        if_zero[:, level, 0] = _term(n, cell, p, 1.0)
    # add.accumulate adds strictly from left to right; sum() would not.
    first, second = (float(np.add.accumulate(np.where(ones, if_one[i], if_zero[i]).reshape(-1))[-1]) for i in (0, 1))
    return first, second


def _term(n: float, cell: float, p: float, sign: float) -> tuple[float, float]:
    """What one bit of a level adds to the two derivatives. sign: -1 for a one, 1 for a zero."""
    stay = 1.0 - p
    chance, gap = stay if sign < 0 else 1.0 - stay, stay - p
    slope, empty = math.log1p(-cell), _power(1.0 - cell, n)
    seen = chance + sign * gap * empty
    first = slope * (1.0 - _ratio(chance, seen))
    return first, sign * chance * gap * math.pow(slope, 2.0) * empty * _power(seen, -2.0)


def _power(base: float, exponent: float) -> float:
    """base ** exponent as IEEE 754 has it, for base >= 0: infinity where Python raises."""
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError):
        return math.inf


def _ratio(above: float, below: float) -> float:
    """above / below as IEEE 754 has it: infinity or NaN where Python raises."""
    with np.errstate(all="ignore"):
        return float(np.float64(above) / np.float64(below))


def _read(blob: bytes) -> tuple[SketchShape, float, bytes]:
    """Shape, p in [0, 0.5) and the bitmap at full length. Raises FormatError: first the format, then our limits."""
    if type(blob) is not bytes:
        raise FormatError("blob", f"expected bytes, got {type(blob).__name__}")
    if len(blob) < _HEAD.size:
        raise FormatError("length", f"{len(blob)} bytes where the header alone has {_HEAD.size}")
    tag, index_bits, levels, p, length = _HEAD.unpack_from(blob)
    if tag != _TAG:
        raise FormatError("tag", f"expected {_TAG}, got {tag}")
    if not 1 <= index_bits <= 32:
        raise FormatError("index bits", f"{index_bits} is outside 1..32")
    if levels < 1 or index_bits + levels > 64:
        raise FormatError("levels", f"{levels} is outside 1..{64 - index_bits} for {index_bits} index bits")
    if not 0.0 <= p < 0.5 or math.copysign(1.0, p) < 0.0:
        raise FormatError("flip probability", f"{p} is outside [0, 0.5)")
    cells = levels << index_bits
    if not 0 <= length <= (cells + 7) // 8:
        raise FormatError("bitmap length", f"{length} is outside 0..{(cells + 7) // 8}")
    if len(blob) != _HEAD.size + length:
        raise FormatError("length", f"{len(blob)} bytes where the header says {_HEAD.size + length}")
    bitmap = blob[_HEAD.size :]
    if bitmap and bitmap[-1] == 0:
        raise FormatError("bitmap", "ends in a zero byte, which Presto drops")
    if bitmap and 8 * len(bitmap) - 9 + bitmap[-1].bit_length() >= cells:
        raise FormatError("bitmap", f"a bit at or past {cells} is set")
    try:
        shape = SketchShape(1 << index_bits, levels)
    except ShapeError as error:
        raise FormatError("shape", f"valid for Presto, not supported here: {error}") from None
    return shape, p, bitmap.ljust(shape.nbytes, b"\0")
