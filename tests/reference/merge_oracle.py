"""The randomized merge as the paper writes it (thm. sym-merge-general), in exact rationals: oracle for sketch/merge.py.

t = (K_1^-1 x ... x K_k^-1) v*, with the Kronecker product spelled out. Bit patterns are tuples (x_1, ..., x_k).
Imports nothing from sfm_stream.
"""

import hashlib
from fractions import Fraction
from itertools import product

Matrix = list[list[Fraction]]


def flip_matrix(q: Fraction) -> Matrix:
    """K: row = true bit, column = noisy bit."""
    return [[1 - q, q], [q, 1 - q]]


def inverse(matrix: Matrix) -> Matrix:
    (a, b), (c, d) = matrix
    determinant = a * d - b * c
    return [[d / determinant, -b / determinant], [-c / determinant, a / determinant]]


def kronecker(left: Matrix, right: Matrix) -> Matrix:
    return [[x * y for x in row for y in other] for row in left for other in right]


def patterns(k: int) -> list[tuple[int, ...]]:
    """All bit patterns in the order of the Kronecker product: the first bit counts most."""
    return list(product((0, 1), repeat=k))


def merged_q(qs: list[Fraction]) -> Fraction:
    """q(eps*) with e^-eps* = 1 - prod (1 - e^-eps_i) and e^-eps_i = q_i / (1 - q_i)."""
    kept = Fraction(1)
    for q in qs:
        kept *= 1 - q / (1 - q)
    odds = 1 - kept
    return odds / (1 + odds)


def one_probabilities(qs: list[Fraction], q_star: Fraction | None = None) -> dict[tuple[int, ...], Fraction]:
    """Pr(out = 1) for every pattern of noisy bits; q_star defaults to the exact q*."""
    q_star = merged_q(qs) if q_star is None else q_star
    matrix: Matrix = [[Fraction(1)]]
    for q in qs:
        matrix = kronecker(matrix, inverse(flip_matrix(q)))
    wanted = [q_star] + [1 - q_star] * (2 ** len(qs) - 1)
    rows = (sum((entry * goal for entry, goal in zip(row, wanted, strict=True)), Fraction(0)) for row in matrix)
    return dict(zip(patterns(len(qs)), rows, strict=True))


def merge_cells(cells: list[list[bool]], qs: list[Fraction], digests: list[bytes]) -> list[bool]:
    """The merged bits, cell by cell: U < Pr(out = 1) with the digits of U from SHAKE-256 of round number and digests.

    cells: the noisy bits of each input. A round gives one byte to every cell whose comparison is still open.
    """
    chances = one_probabilities(qs, Fraction(-(-merged_q(qs) * 2**64 // 1), 2**64))
    open_cells = {cell: chances[tuple(int(bit) for bit in bits)] for cell, bits in enumerate(zip(*cells, strict=True))}
    out = [False] * len(cells[0])
    for number in range(8):
        stream = hashlib.shake_256(number.to_bytes(8, "big") + b"".join(sorted(digests))).digest(len(open_cells))
        for digit, (cell, rest) in zip(stream, sorted(open_cells.items()), strict=True):
            wanted = int(rest * 256)
            out[cell] = digit < wanted
            open_cells[cell] = rest * 256 - wanted
            if digit != wanted:
                del open_cells[cell]
    return out


def noisy_chances(truth: tuple[int, ...], qs: list[float]) -> list[float]:
    """Pr(noisy pattern | true bits) for every pattern, in the order of `patterns`."""
    chances = []
    for noisy in patterns(len(qs)):
        chance = 1.0
        for true, seen, q in zip(truth, noisy, qs, strict=True):
            chance *= q if true != seen else 1 - q
        chances.append(chance)
    return chances


def old_presto_probability(bits: tuple[int, ...], qs: list[float]) -> float:
    """The biased pairwise merge that Presto shipped, kept as a plant: the correction is scaled twice, then clamped."""
    (b1, b2), (q1, q2) = bits, qs
    q = (q1 + q2 - 3 * q1 * q2) / (1 - 2 * q1 * q2)
    scale = (1 - 2 * q) / ((1 - 2 * q1) * (1 - 2 * q2))
    inner = 1 - 2 * q - scale * (1 - q1 - b1) * (1 - q2 - b2)
    return min(1.0, max(0.0, q + scale * inner))


def and_probabilities(qs: list[Fraction]) -> dict[tuple[int, ...], Fraction]:
    """Pr(out = 1) of the merge for AND (cor. and-sym-rr-merge): v* is q* but for the last entry, 1 - q*."""
    q_star = merged_q(qs)
    matrix: Matrix = [[Fraction(1)]]
    for q in qs:
        matrix = kronecker(matrix, inverse(flip_matrix(q)))
    wanted = [q_star] * (2 ** len(qs) - 1) + [1 - q_star]
    rows = (sum((entry * goal for entry, goal in zip(row, wanted, strict=True)), Fraction(0)) for row in matrix)
    return dict(zip(patterns(len(qs)), rows, strict=True))


def odd_probability(qs: list[Fraction]) -> Fraction:
    """Pr(an odd number of independent coins comes up), summed over all their outcomes."""
    total = Fraction(0)
    for outcome in patterns(len(qs)):
        if sum(outcome) % 2:
            chance = Fraction(1)
            for q, shown in zip(qs, outcome, strict=True):
                chance *= q if shown else 1 - q
            total += chance
    return total
