"""What is counted, and the exact answers to it."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import xxhash

from benchmarks.peers.programs.page_events import MINUTE_MS, events, value

HOUR_MS = 3_600_000
HOUR_END_MS = (int(time.time() * 1000) // HOUR_MS - 1) * HOUR_MS
"""End of the last whole hour but one: the windows of every data set end it, and the events behind them are past too."""


@dataclass(frozen=True)
class DataSet:
    """Page events of some windows of a minute (programs/page_events.py), and behind them one event a page."""

    pages: int
    windows: int
    window_events: int
    one_a_batch: bool = False
    partitions: int = 1

    @property
    def name(self) -> str:
        shape = f"{self.pages}x{self.windows}x{self.window_events}"
        return f"{shape}{'-one' * self.one_a_batch}-p{self.partitions}"

    @property
    def start_ms(self) -> int:
        return HOUR_END_MS - self.windows * MINUTE_MS

    @property
    def total(self) -> int:
        """Events, with those that close."""
        return self.windows * self.window_events + self.pages

    @property
    def releases(self) -> int:
        return self.pages * self.windows


@dataclass(frozen=True)
class Truth:
    """windows: page and start (ms) of a window to its distinct users. hours: page to those of all windows together.

    hashes: the exclusive or of xxHash64 of the user of every event.
    """

    windows: dict[tuple[str, int], int]
    hours: dict[str, int]
    hashes: int


@cache
def truth(data: DataSet) -> Truth:
    """Exact, by a set for each page and window; the partition and the batch of an event mean nothing here."""
    if data.one_a_batch or data.partitions > 1:
        return truth(DataSet(data.pages, data.windows, data.window_events))
    users: dict[tuple[int, int], set[int]] = defaultdict(set)
    digests: dict[int, int] = {}
    mixed = 0
    for page, user, at_ms, _ in events(data.pages, data.windows, data.window_events, data.start_ms):
        users[page, (at_ms - data.start_ms) // MINUTE_MS].add(user)
        if user not in digests:
            digests[user] = xxhash.xxh64_intdigest(b"user-%06d" % user)
        mixed ^= digests[user]
    windows, hours = {}, defaultdict(set)
    for (page, window), found in users.items():
        if window < data.windows:
            windows[f"/page/{page:04d}", data.start_ms + window * MINUTE_MS] = len(found)
            hours[f"/page/{page:04d}"] |= found
    return Truth(windows, {page: len(found) for page, found in hours.items()}, mixed)


def write_lines(data: DataSet, path: Path) -> None:
    """The events as a file of JSON lines, those that close left out."""
    with path.open("wb") as sink:
        for page, user, at_ms, number in events(data.pages, data.windows, data.window_events, data.start_ms):
            if at_ms < HOUR_END_MS:
                sink.write(value(page, user, at_ms, number) + b"\n")


@dataclass(frozen=True)
class Scale:
    """How large the data are. Steady rates are the slope between the small and the large set of a row."""

    window_events: int
    pages: int
    few_pages: int
    """So few that a page has ten times the events in a window."""
    windows: int
    short_windows: int
    """For peers so slow that a million events say no more than these."""

    def hundred(self, windows: int, one_a_batch: bool = False) -> DataSet:
        """100 events a release."""
        return DataSet(self.pages, windows, self.window_events, one_a_batch)

    def thousand(self, windows: int) -> DataSet:
        """1,000 events a release."""
        return DataSet(self.few_pages, windows, self.window_events)


FULL = Scale(window_events=100_000, pages=1000, few_pages=100, windows=10, short_windows=3)
QUICK = Scale(window_events=2_000, pages=20, few_pages=2, windows=3, short_windows=2)
