"""Ranks that intervals leave open, by going through every pair."""

from __future__ import annotations

from collections.abc import Sequence


def naive_ranks(intervals: Sequence[tuple[float, float]]) -> list[tuple[int, int]]:
    """For each interval the first and the last place that its number can have, the largest number first."""
    found = []
    for mine, (low, high) in enumerate(intervals):
        others = [each for place, each in enumerate(intervals) if place != mine]
        surely_larger = sum(other_low > high for other_low, _ in others)
        surely_smaller = sum(other_high < low for _, other_high in others)
        found.append((1 + surely_larger, len(intervals) - surely_smaller))
    return found
