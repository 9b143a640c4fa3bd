"""Bitmaps of other layouts as they stand on paper, item after item, with sets and decimals: oracle for layout.py.

Imports nothing from sfm_stream.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from decimal import Decimal, localcontext

import xxhash

CellSet = set[int]


def hash_of(number: int) -> int:
    """xxHash64 of an integer item: 8 bytes, little-endian."""
    return xxhash.xxh64_intdigest(struct.pack("<q", number))


def uniform_cells(numbers: Iterable[int], cells: int, hashes: int) -> CellSet:
    """Linear counting (hashes = 1) and Bloom filters: the top 32 bits as a fraction of the cells, then a new hash."""
    lit = set()
    for number in numbers:
        value = hash_of(number)
        for _ in range(hashes):
            lit.add((value >> 32) * cells // 2**32)
            value = xxhash.xxh64_intdigest(struct.pack("<Q", value))
    return lit


def legion_borders(cells: int, decay: float) -> list[Decimal]:
    """F(1), .., F(cells): Pr(cell < i) with Pr(cell = i) proportional to exp(-decay i / cells)."""
    with localcontext() as context:
        context.prec = 50
        rate = Decimal(decay) / cells
        whole = 1 - (-rate * cells).exp()
        return [(1 - (-rate * i).exp()) / whole for i in range(1, cells + 1)]


def legion_cells(numbers: Iterable[int], borders: Sequence[Decimal]) -> CellSet:
    """Liquid Legions: the top 53 bits as a uniform number, through the inverse of the distribution function."""
    return {bisect_right(borders, Decimal(hash_of(number) >> 11) / 2**53) for number in numbers}


def expected_empty(sizes: Sequence[float], rho: Sequence[float], throws: float) -> float:
    return math.fsum(size * (1 - r) ** throws for size, r in zip(sizes, rho, strict=True))


def variance_of_sum(weights: Sequence[float], cell_variance: Sequence[float], rho: Sequence[float], n: int) -> float:
    """Variance of the weighted sum of z over all cells, the double sum over pairs of cells written out.

    z has mean 1 in an empty cell and 0 in a lit one. weights, cell_variance, rho: one number for each cell.
    """
    total = math.fsum(w * w * v for w, v in zip(weights, cell_variance, strict=True))
    for i, (w, r) in enumerate(zip(weights, rho, strict=True)):
        for v, s in zip(weights[:i], rho[:i], strict=True):
            total += 2 * w * v * ((1 - r - s) ** n - (1 - r) ** n * (1 - s) ** n)
    return total
