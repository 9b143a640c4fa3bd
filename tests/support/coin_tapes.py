"""Every tape of coins that a function may draw: its exact law, with no sampling."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.bernoulli import Word


class NeedsMore(Exception):
    pass


class Tape:
    """Coins that serve given digits and stop when they run out."""

    def __init__(self, digits: tuple[int, ...]) -> None:
        self.left = digits
        self.requests: list[int] = []

    def digits(self, count: int) -> NDArray[np.uint8]:
        self.requests.append(count)
        if count > len(self.left):
            raise NeedsMore(count - len(self.left))
        served, self.left = self.left[:count], self.left[count:]
        return np.array(served, np.uint8)


def explore(
    function: Callable[..., Any], x: int, noise: object, word: Word, cells: int
) -> tuple[dict[int, Fraction], dict[tuple[int, ...], tuple[int, ...]]]:
    """The exact law of the output for one input, and the requests on each tape, over the tree of all tapes.

    function(packed bits, noise, coins, word, cells): noise is a threshold or a mechanism.
    """
    lengths: Counter[tuple[int, int]] = Counter()
    requests: dict[tuple[int, ...], tuple[int, ...]] = {}
    tapes: list[tuple[int, ...]] = [()]
    while tapes:
        digits = tapes.pop()
        tape = Tape(digits)
        try:
            output = int(function(np.array([x], np.uint8), noise, tape, word, cells)[0])
        except NeedsMore as more:
            tapes.extend(digits + rest for rest in product(range(1 << word.digit_bits), repeat=more.args[0]))
            continue
        lengths[output, len(digits)] += 1
        requests[digits] = tuple(tape.requests)
    law: defaultdict[int, Fraction] = defaultdict(Fraction)
    for (output, length), count in lengths.items():
        law[output] += Fraction(count, 1 << word.digit_bits * length)
    return law, requests


def assert_draws(requests: Mapping[int, dict[tuple[int, ...], tuple[int, ...]]]) -> None:
    """requests: for each input, what was asked of each tape. The coins alone decide how many are drawn."""
    assert all(made == requests[0] for made in requests.values()), "draws: the number of digits depends on the data"
