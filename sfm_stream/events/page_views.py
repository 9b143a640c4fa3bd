"""Seeded page views for examples, tests and benchmarks. No I/O.

Line number i depends on the seed and on i alone (within a fixed block of lines), so any count and any chunk size give
a prefix of one endless stream. numpy's generator is used here and nowhere else in the package: nothing private depends
on these numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from sfm_stream.errors import UsageError
from sfm_stream.units import DAY_MS, MINUTE_MS

_BLOCK_LINES = 8192
_DAY_STEPS = 1440
_LINE = b'{"page":"/p/%d","user":"u-%08d","at":%d,"session":"%08x","referrer":"/p/%d","agent":"%b","spent":%d}'
_AGENTS = (b"firefox", b"chrome", b"safari", b"curl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What the page views look like.

    start_ms: time of the first line; per_second: mean rate, which swings over each day by `swing` (0..1). pages:
    visited by Zipf's law with `zipf`. visitors: those who come again and again, few of them often; new_share of the
    views are by someone never seen before or after. late_share of the lines carry an event time of up to twice
    `grace_ms` ago, all others of up to `jitter_ms` ago. bad_share of the lines cannot be counted, of any kind.

    Raises UsageError.
    """

    start_ms: int = 1_700_000_000_000
    per_second: float = 100.0
    swing: float = 0.6
    pages: int = 1000
    zipf: float = 1.1
    visitors: int = 100_000
    new_share: float = 0.2
    late_share: float = 0.02
    grace_ms: int = MINUTE_MS
    jitter_ms: int = 2_000
    bad_share: float = 0.002

    def __post_init__(self) -> None:
        for name in ("swing", "new_share", "late_share", "bad_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name}: expected 0..1")
        for name in ("per_second", "pages", "visitors", "grace_ms", "jitter_ms"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name}: expected more than 0")


def page_views(
    count: int, seed: int, traffic: Traffic | None = None, chunk_lines: int = _BLOCK_LINES
) -> Iterator[bytes]:
    """Chunks of `chunk_lines` lines (the last one may be shorter), each line about 120 bytes and ending in a newline.

    Fields: page, user (text), at (ms), and session, referrer, agent, spent as ballast. count >= 0, seed >= 0.
    """
    if count < 0 or seed < 0 or chunk_lines < 1:
        raise UsageError("page_views: expected count >= 0, seed >= 0 and chunk_lines >= 1")
    maker = _Maker(traffic or Traffic(), seed)
    waiting: list[bytes] = []
    for start in range(0, count, _BLOCK_LINES):
        waiting += maker.block(start)[: count - start]
        whole = len(waiting) - len(waiting) % chunk_lines
        for first in range(0, whole, chunk_lines):
            yield b"".join(waiting[first : first + chunk_lines])
        del waiting[:whole]
    if waiting:
        yield b"".join(waiting)


class _Maker:
    """Makes blocks of lines."""

    def __init__(self, traffic: Traffic, seed: int) -> None:
        self._traffic, self._seed = traffic, seed
        weights = np.arange(1, traffic.pages + 1, dtype=np.float64) ** -traffic.zipf
        self._page_cdf = np.cumsum(weights) / weights.sum()
        phase = np.linspace(0.0, 2 * np.pi, _DAY_STEPS + 1)
        self._day_share = (phase + traffic.swing * (1 - np.cos(phase))) / (2 * np.pi)  # of the day's views by that time
        self._day_ms = np.linspace(0.0, DAY_MS, _DAY_STEPS + 1)

    def block(self, start: int) -> list[bytes]:
        """Lines start .. start + _BLOCK_LINES - 1; start is a multiple of the block."""
        traffic, size = self._traffic, _BLOCK_LINES
        draw = Generator(PCG64(SeedSequence([self._seed, start // size])))
        numbers = np.arange(start, start + size)
        page = np.searchsorted(self._page_cdf, draw.random(size)) % traffic.pages
        again = (traffic.visitors * draw.random(size) ** 3).astype(np.int64)
        user = np.where(draw.random(size) < traffic.new_share, traffic.visitors + numbers, again)
        late = draw.random(size) < traffic.late_share
        delay = draw.random(size) * np.where(late, 2 * traffic.grace_ms, traffic.jitter_ms)
        at = self._arrivals(numbers) - delay.astype(np.int64)
        session = draw.integers(0, 1 << 32, size)
        referrer = draw.integers(0, traffic.pages, size)
        agent = [_AGENTS[index] for index in draw.integers(0, len(_AGENTS), size).tolist()]
        spent = draw.integers(0, 100_000, size)
        bad = np.flatnonzero(draw.random(size) < traffic.bad_share)
        columns = [column.tolist() for column in (page, user, at, session, referrer)]
        lines = [_LINE % row + b"\n" for row in zip(*columns, agent, spent.tolist(), strict=True)]
        kinds = draw.integers(0, len(_SPOILED), bad.size).tolist()
        for index, kind in zip(bad.tolist(), kinds, strict=True):
            lines[index] = _SPOILED[kind](lines[index][:-1], int(at[index])) + b"\n"
        return lines

    def _arrivals(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ascending times at which the lines come in: the inverse of the day's curve."""
        day, share = np.divmod(numbers / (self._traffic.per_second * 86_400), 1.0)
        within = np.interp(share, self._day_share, self._day_ms)
        return self._traffic.start_ms + (day * DAY_MS + within).astype(np.int64)


def _at(value: Callable[[int], bytes]) -> Callable[[bytes, int], bytes]:
    return lambda line, at: line.replace(b'"at":%d' % at, b'"at":' + value(at))


def _member(old: bytes, new: bytes) -> Callable[[bytes, int], bytes]:
    return lambda line, at: line.replace(old, new)


_SPOILED: Final[tuple[Callable[[bytes, int], bytes], ...]] = (
    lambda line, at: line[: len(line) // 2],
    lambda line, at: line[:-1] + b',"user":"u-00000000"}',
    lambda line, at: b"\xff\xfe" + line,
    lambda line, at: b"\x00\x00\x00\x00\x07" + line,
    lambda line, at: b"[" + line + b"]",
    lambda line, at: b"not json at all",
    _at(lambda at: b"%d" % (at // 1000)),
    _at(lambda at: b"%d000" % at),
    _at(lambda at: b'"%d ms"' % at),
    _at(lambda at: b"null"),
    _at(lambda at: b"-1"),
    _at(lambda at: b"253402300799999"),
    _member(b'"page":"/p/', b'"page":null,"was":"/p/'),
    _member(b'"page":"/p/', b'"page":true,"was":"/p/'),
    _member(b'"page":"/p/', b'"page":12345678901234567890,"was":"/p/'),
    _member(b'"page":"/p/', b'"was":"/p/'),
    _member(b'"user":"', b'"user":null,"was":"'),
    _member(b'"user":"', b'"user":1.5,"was":"'),
    _member(b'"user":"', b'"user":{"id":1},"was":"'),
    _member(b'"user":"', b'"user":-9223372036854775809,"was":"'),
    _member(b'"user":"', b'"was":"'),
    _member(b'"user":"', b'"user":NaN,"was":"'),
    _member(b'"user":"', b'"user":"\\ud83d'),
)
"""Ways to spoil a line, given the line without its newline and its event time."""
