"""Coins whose digits are asked for one place at a time, as plain integers. Nothing of the package is used."""

from __future__ import annotations


def lazy_coins(thresholds, digits, bits, digit_bits):
    """For each threshold, whether U < threshold, where U has `bits` bits.

    digits: called with n, it gives n digits of `digit_bits` bits. A digit is drawn for every U whose digits so far are
    those of its threshold, all of one place in one request; a place that nobody needs is not asked for.
    """
    known = [0] * len(thresholds)
    left = bits
    places = [bits] * len(thresholds)
    undecided = list(range(len(thresholds)))
    while left and (undecided or left == bits):
        left -= digit_bits
        for coin, digit in zip(undecided, list(digits(len(undecided))), strict=True):
            known[coin] = known[coin] << digit_bits | int(digit)
            places[coin] = left
        undecided = [coin for coin in undecided if known[coin] == thresholds[coin] >> left]
    return [known[coin] < threshold >> places[coin] for coin, threshold in enumerate(thresholds)]


def lazy_noise(low, more, digits, bits, digit_bits):
    """One discrete Laplace noise G - H: both have low digits and the first coin of the rest in one request."""
    up = lazy_coins([*low, more] * 2, digits, bits, digit_bits)
    half = len(low) + 1
    total, growing = 0, []
    for sign, coins in ((1, up[:half]), (-1, up[half:])):
        total += sign * sum(1 << place for place, coin in enumerate(coins) if coin)
        growing += [sign] if coins[-1] else []
    while growing:
        again = lazy_coins([more] * len(growing), digits, bits, digit_bits)
        growing = [sign for sign, coin in zip(growing, again, strict=True) if coin]
        total += sum(growing) << len(low)
    return total
