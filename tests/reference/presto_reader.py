"""A naive second reader of Presto's sketch bytes and a second copy of its estimator: the oracle for wire/presto.py.

Pure Python, one bit at a time, written from the format description alone. Imports nothing from sfm_stream.
"""

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Blob:
    index_bits: int
    levels: int
    p: float
    bits: frozenset[int]


def _little(data: bytes) -> int:
    value = 0
    for place, byte in enumerate(data):
        value += byte << (8 * place)
    return value


def _signed(data: bytes) -> int:
    value = _little(data)
    return value - (1 << (8 * len(data))) if data[-1] & 0x80 else value


def _double(data: bytes) -> float:
    """IEEE 754 binary64 by hand."""
    word = _little(data)
    sign, exponent, fraction = word >> 63, (word >> 52) & 0x7FF, word & ((1 << 52) - 1)
    if exponent == 0x7FF:
        return math.nan if fraction else (-math.inf if sign else math.inf)
    size = math.ldexp(fraction, -1074) if exponent == 0 else math.ldexp((1 << 52) + fraction, exponent - 1075)
    return -size if sign else size


def read(blob: bytes) -> Blob:
    """The fields of a blob that Presto's own writer could have produced. Raises ValueError for any other bytes."""
    if len(blob) < 21:
        raise ValueError("short")
    tag, n, levels = _signed(blob[:1]), _signed(blob[1:5]), _signed(blob[5:9])
    p, length = _double(blob[9:17]), _signed(blob[17:21])
    if tag != 7:
        raise ValueError("tag")
    if n < 1 or n > 32 or levels <= 0 or n + levels > 64:
        raise ValueError("shape")
    if math.isnan(p) or p < 0 or p >= 0.5 or str(p).startswith("-"):
        raise ValueError("p")
    if length < 0 or len(blob) != 21 + length:
        raise ValueError("length")
    bits = frozenset(8 * i + j for i, byte in enumerate(blob[21:]) for j in range(8) if byte >> j & 1)
    if bits and max(bits) >= levels * 2**n:
        raise ValueError("bit")
    if length != (max(bits) // 8 + 1 if bits else 0):
        raise ValueError("padding")
    return Blob(n, levels, p, bits)


def write(blob: Blob) -> bytes:
    """The bytes of these fields, raw (p = 0) or private."""
    mantissa, exponent = math.frexp(blob.p)
    word = 0 if blob.p == 0 else ((exponent + 1022) << 52) + (int(mantissa * 2**53) - (1 << 52))
    bitmap = bytearray(max(blob.bits) // 8 + 1 if blob.bits else 0)
    for bit in blob.bits:
        bitmap[bit // 8] |= 1 << bit % 8
    numbers = [(7, 1), (blob.index_bits, 4), (blob.levels, 4), (word, 8), (len(bitmap), 4)]
    return b"".join(value.to_bytes(size, "little") for value, size in numbers) + bytes(bitmap)


def cell_of(h: int, index_bits: int, levels: int) -> int:
    """The cell that a 64-bit hash lights: its top binary digits, then the zeros that end the others."""
    top, rest = format(h, "064b")[:index_bits], format(h, "064b")[index_bits:]
    return min(levels - 1, len(rest) - len(rest.rstrip("0"))) * (1 << index_bits) + int(top, 2)


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
    except ValueError:  # 0 ** negative
        return math.inf


def _quotient(above: float, below: float) -> float:
    if below != 0:
        return above / below
    return math.nan if above == 0 or math.isnan(above) else math.copysign(math.inf, above) * math.copysign(1, below)


def cardinality(blob: Blob) -> int:
    """Presto's count: one likelihood term a bit, summed bit by bit."""
    buckets = 2**blob.index_bits
    keep = 1 - blob.p
    rows = [[level * buckets + bucket in blob.bits for bucket in range(buckets)] for level in range(blob.levels)]

    def terms(level: int, on: bool, n: float) -> tuple[float, float]:
        chance = math.pow(2.0, -(level + 1)) / buckets
        sign, c1, c2 = (-1, keep, keep - blob.p) if on else (1, 1 - keep, keep - blob.p)
        power = _power(1 - chance, n)
        below = c1 + sign * c2 * power
        first = math.log1p(-chance) * (1 - _quotient(c1, below))
        second = sign * c1 * c2 * math.log1p(-chance) ** 2 * power * _power(below, -2)
        return first, second

    guess, step, rounds = 1.0, math.inf, 0
    while abs(step) > 0.1 and rounds < 1000:
        first = second = 0.0
        for level, row in enumerate(rows):
            lit, dark = terms(level, True, guess), terms(level, False, guess)
            for on in row:
                term = lit if on else dark
                first += term[0]
                second += term[1]
        step = _quotient(-first, second)
        guess += step
        rounds += 1
    if math.isnan(guess) or guess < 0:
        return 0
    return 2**63 - 1 if guess > 2**63 else math.floor(Fraction(guess) + Fraction(1, 2))
