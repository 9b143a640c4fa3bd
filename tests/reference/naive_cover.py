"""The cover of a span by sets of quarters of an hour: oracle for answers/cover.py. Imports nothing of it.

Windows are (start, end) in quarters. Each is a set of the quarters in it, and two go together if no quarter is in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def naive_cover(windows: Iterable[tuple[int, int]], low: int, high: int) -> list[tuple[int, int]]:
    """Of the windows inside [low, high), again and again the longest that shares no quarter; of several the first."""
    left = [window for window in set(windows) if low <= window[0] and window[1] <= high]
    taken: list[tuple[int, int]] = []
    used: set[int] = set()
    while left:
        best = left[0]
        for window in left[1:]:
            longer = len(range(*window)) > len(range(*best))
            equal = len(range(*window)) == len(range(*best))
            if longer or (equal and window[0] < best[0]):
                best = window
        taken.append(best)
        used |= set(range(*best))
        left = [window for window in left if not used & set(range(*window))]
    return sorted(taken)


def naive_gaps(windows: Iterable[tuple[int, int]], low: int, high: int) -> set[int]:
    """The quarters of [low, high) that are in no window."""
    return set(range(low, high)) - {quarter for window in windows for quarter in range(*window)}


def naive_fill(quarters: set[int], sizes: Sequence[int]) -> int:
    """How many whole aligned windows fill these quarters, the longest size first."""
    count, left = 0, set(quarters)
    for size in sizes:
        for start in sorted(left):
            window = set(range(start, start + size))
            if start % size == 0 and window <= left:
                count += 1
                left -= window
    return count
