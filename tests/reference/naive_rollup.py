"""What a roll-up must publish, from a plain walk over the log: oracle for rollup/rollup.py. Imports nothing of it.

The log is a list of events in order:
    ("release", epoch, start_ms, key, bits)      bits: a string of "0" and "1"
    ("marker", epoch, start_ms, through_ms)
"""

from __future__ import annotations

from dataclasses import dataclass

HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Expected:
    released: int
    decided: int
    windows: int
    complete: bool
    revision: int
    counts: tuple[int, ...]


def spans_of(time_ms: int, base_ms: int, days: list[int]) -> list[tuple[str, int, int]]:
    """(grain, start, end) of every span that holds a time; days: borders of local days around all of the log."""
    found = [("hour", time_ms // HOUR_MS * HOUR_MS, time_ms // HOUR_MS * HOUR_MS + HOUR_MS)]
    if base_ms < HOUR_MS:
        found.append(("quarter", time_ms // base_ms * base_ms, time_ms // base_ms * base_ms + base_ms))
    start = max(border for border in days if border <= time_ms)
    return [*found, ("day", start, min(border for border in days if border > time_ms))]


def roll_up(log, window_ms, base_ms, days, expire_ms=0):
    """({(epoch, grain, start, end, key): Expected}, counts of outcomes) once all of the log is read.

    Spans that are not final but end at or before expire_ms are in it too, as they stand.
    """
    kept: dict[tuple[int, int, str], str] = {}
    decided: dict[int, list[int]] = {}
    outcomes = {"merged": 0, "duplicate": 0, "conflict": 0, "already_final": 0, "markers": 0}

    def ended(epoch):
        reached = max(decided.get(epoch, [-1])) + window_ms
        return epoch in decided and any(min(w) <= reached for n, w in decided.items() if n > epoch)

    def final(epoch, end):
        return ended(epoch) or (epoch in decided and max(decided[epoch]) + window_ms >= end)

    for event in log:
        if event[0] == "marker":
            _, epoch, start, through = event
            decided.setdefault(epoch, []).extend(range(start, through, window_ms))
            outcomes["markers"] += 1
            continue
        _, epoch, start, key, bits = event
        known = kept.get((epoch, start, key))
        if final(epoch, start // base_ms * base_ms + base_ms):
            outcomes["already_final"] += 1
        elif known is not None:
            outcomes["duplicate" if known == bits else "conflict"] += 1
        else:
            kept[epoch, start, key] = bits
            outcomes["merged"] += 1

    groups: dict[tuple[int, str, int, int, str], list[str]] = {}
    for (epoch, start, key), bits in kept.items():
        for grain, low, high in spans_of(start, base_ms, days):
            groups.setdefault((epoch, grain, low, high, key), []).append(bits)
    found = {}
    for (epoch, grain, low, high, key), parts in groups.items():
        complete = final(epoch, high)
        if not complete and high > expire_ms:
            continue
        count = len({w for w in decided.get(epoch, []) if low <= w < high})
        ones = tuple(sum(int(part[cell]) for part in parts) for cell in range(len(parts[0])))
        windows, revision = (high - low) // window_ms, len(parts) + count + (1 if complete else 0)
        found[epoch, grain, low, high, key] = Expected(len(parts), count, windows, complete, revision, ones)
    return found, outcomes
