"""Every tape of coins that a function may draw: its exact law, with no sampling."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np


class NeedsMore(Exception):
    pass


class Tape:
    """Coins that serve given digits and stop when they run out."""

    def __init__(self, digits):
        self.left, self.requests = digits, []

    def digits(self, count):
        self.requests.append(count)
        if count > len(self.left):
            raise NeedsMore(count - len(self.left))
        served, self.left = self.left[:count], self.left[count:]
        return np.array(served, np.uint8)


def explore(function, x, noise, word, cells):
    """The exact law of the output for one input, and the requests on each tape, over the tree of all tapes.

    function(packed bits, noise, coins, word, cells): noise is a threshold or a mechanism.
    """
    lengths, requests, tapes = Counter(), {}, [()]
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
    law = Counter()
    for (output, length), count in lengths.items():
        law[output] += Fraction(count, 1 << word.digit_bits * length)
    return law, requests


def assert_draws(requests):
    """requests: for each input, what was asked of each tape. The coins alone decide how many are drawn."""
    assert all(made == requests[0] for made in requests.values()), "draws: the number of digits depends on the data"
