"""The events that every peer counts, and nothing but the standard library: peers run it in environments of their own.

A minute of event time holds as many events as every other, so a run over more windows differs from one over a single
window by whole windows of the same work. Half of the events of a page come from its 40 regulars, the other half from
anyone of a million users. Events are up to two seconds out of order. Behind them, five minutes later, comes one event a
page: it closes every window before it, for peers that close by time, and belongs to no answer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

MINUTE_MS, QUIET_MINUTES = 60_000, 5
SECONDS_APART, REGULARS, USERS = 2, 40, 1_000_000


def events(pages: int, windows: int, window_events: int, start_ms: int) -> Iterator[tuple[int, int, int, int]]:
    """(page, user, time in ms, number) of each event in order of arrival, the closing ones last."""
    draw = random.Random(14).random
    step, end_ms = MINUTE_MS / window_events, MINUTE_MS - SECONDS_APART * 1000
    for number in range(windows * window_events):
        page = int(draw() * pages)
        user = page * REGULARS + int(draw() * REGULARS) if draw() < 0.5 else int(draw() * USERS)
        at, minute = number % window_events * step, number // window_events
        yield page, user, start_ms + minute * MINUTE_MS + int(min(at, end_ms) + draw() * SECONDS_APART * 1000), number
    for page in range(pages):
        yield page, 0, start_ms + (windows + QUIET_MINUTES) * MINUTE_MS, page


def key(page: int) -> bytes:
    return b"/page/%04d" % page


def value(page: int, user: int, at_ms: int, number: int) -> bytes:
    """About 120 bytes."""
    rest = b'"from":"/page/%04d","agent":"Firefox/128","country":"FR"' % ((page * 7 + number) % 1000)
    return b'{"page":"/page/%04d","user":"user-%06d","ts":%d,%s}' % (page, user, at_ms, rest)


def partition_of(page: int, partitions: int) -> int:
    """Where the Java producer sends the events of a page: by its murmur2, of which it takes the lower 31 bits."""
    data, factor, mask = key(page), 0x5BD1E995, 0xFFFFFFFF
    mixed = (0x9747B28C ^ len(data)) & mask
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * factor & mask
        mixed = (mixed * factor & mask) ^ ((word ^ word >> 24) * factor & mask)
    if rest := data[whole:]:
        mixed = (mixed ^ int.from_bytes(rest, "little")) * factor & mask
    mixed = (mixed ^ mixed >> 13) * factor & mask
    return ((mixed ^ mixed >> 15) & 0x7FFFFFFF) % partitions
