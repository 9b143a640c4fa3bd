"""Drive the roll-up of one partition by hand: logs of releases and markers, steps that are lost, restarts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from support.memory_topics import Topics

from sfm_stream.answers.rollup_sketches import with_sketches
from sfm_stream.estimation.estimate import Estimate, Status
from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.pipeline.rollup.rollup import Rollup
from sfm_stream.sketch.sfm import GRID, NoisyCount, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally_histogram import TallyHistogram
from sfm_stream.types import Commit, KeyValue, Step, Window
from sfm_stream.units import ROLLUPS
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord, decode, decode_rollup, encode
from sfm_stream.wire.keys import encode_key

MINUTE_MS, QUARTER_MS, HOUR_MS = 60_000, 900_000, 3_600_000
DAY_MS = 24 * HOUR_MS
SHAPE = SketchShape(16, 2)
K = GRID // 5
PIPELINE = "views"


def at(text: str) -> int:
    """Milliseconds of a UTC time."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def cheap_estimates(tallies: Iterable[TallyHistogram]) -> list[Estimate]:
    """A stand-in for the estimator, which is not what these tests are about: the sum of all ones, and a check."""
    return [_cheap(tally) for tally in tallies]


def _cheap(tally: TallyHistogram) -> Estimate:
    each = tally.cells * np.arange(tally.releases + 1)
    squares = each * np.arange(tally.releases + 1)
    total = float(each.sum())
    check = int(squares.sum(axis=1) @ _weights(len(squares))) % 1_000_000
    return Estimate(total, float(check), max(0.0, total - 2), total + 2, Status.OK, 0.95, total)


def check_of(counts: Sequence[int], levels: int = 2) -> float:
    """The check of a tally with these counts, level by level: a number of six digits."""
    squares = np.array(counts, np.int64).reshape(levels, -1) ** 2
    return float(int(squares.sum(axis=1) @ _weights(levels)) % 1_000_000)


def _weights(levels: int) -> NDArray[np.int64]:
    return 3 + 7 * np.arange(levels)


def whole(records: Iterable[RollupRecord], log: Iterable[bytes]) -> list[RollupRecord]:
    """Roll-ups with the tallies and merged sketches of their releases, which are in this log."""
    return list(with_sketches(Topics(log), records))


def bits_of(seed: int, shape: SketchShape = SHAPE) -> str:
    """Cells of a sketch in order, as a string of "0" and "1"."""
    return "".join(np.random.default_rng(seed).choice(["0", "1"], shape.cells))


def release(start_ms: int, key: KeyValue = "a", bits: str | None = None, **other: object) -> bytes:
    """A release as it stands in the topic. other: window_ms, and fields of the record or of its sketch."""
    window_ms = int(str(other.pop("window_ms", QUARTER_MS)))
    shape = other.pop("shape", SHAPE)
    assert isinstance(shape, SketchShape)
    cells = [digit == "1" for digit in (bits_of(start_ms // MINUTE_MS % 997, shape) if bits is None else bits)]
    packed = np.packbits(cells, bitorder="little").tobytes()
    count = other.pop("count", None)
    assert count is None or isinstance(count, NoisyCount)
    sketch = SfmSketch(shape, int(str(other.pop("k", K))), str(other.pop("hash", "xxh64")), packed, count)
    fields = {"pipeline": PIPELINE, "epoch": 1, "partition": 0, "partitions": 1, "unit": "removed"} | other
    record = Release(window=Window(start_ms, start_ms + window_ms), key=encode_key(key), sketch=sketch, **fields)  # type: ignore[arg-type]
    return encode(record)


def marker(start_ms: int, through_ms: int, window_ms: int = QUARTER_MS, **other: object) -> bytes:
    fields = {"pipeline": PIPELINE, "epoch": 1, "partition": 0, "partitions": 1, "fingerprint": "ab"} | other
    return encode(CloseMarker(start_ms=start_ms, through_ms=through_ms, window_ms=window_ms, **fields))  # type: ignore[arg-type]


@dataclass
class Run:
    """A roll-up, its log of input, what it published and where it stands. Checks what must hold at every commit.

    finest: epoch and name of a released span to the grain that its releases go into; that of the calendar's base where
    records name no span.
    """

    calendar: Calendar
    log: list[bytes]
    max_bytes: int = 8 << 20
    finest: dict[tuple[int, str], str] = field(default_factory=dict)
    rollup: Rollup = field(init=False)
    commit: Commit | None = None
    history: list[bytes] = field(default_factory=list)
    newest: dict[tuple[object, ...], bytes] = field(default_factory=dict)
    at: int = 0
    passed: int = 0
    """Records of the log before this were found to be published: that never changes."""

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """All that was not committed is gone. Of the published records those are read that the roll-up asks for."""
        self.rollup = Rollup(PIPELINE, 0, self.calendar, self.max_bytes)
        self.at = self.rollup.restore(self.commit, self._recalled(self.rollup))
        assert self.at == (self.commit.offset if self.commit else 0)

    def _recalled(self, rollup: Rollup) -> Iterator[bytes]:
        since_ms = rollup.recalls_since_ms
        for payload in self.history:
            end_ms = decode_rollup(payload).window.end_ms
            if end_ms > since_ms and rollup.recalls(end_ms):
                yield payload

    def read(self, count: int | None = None) -> bool:
        """Add the next records; whether there were any."""
        upto = len(self.log) if count is None else min(self.at + count, len(self.log))
        for offset in range(self.at, upto):
            self.rollup.add(offset, self.log[offset])
        moved, self.at = upto > self.at, upto
        return moved

    def take(self, step: Step) -> None:
        """Commit one step."""
        for record in step.publish:
            assert (record.topic, record.partition) == (ROLLUPS, 0)
            decoded = decode(record.value)
            assert isinstance(decoded, RollupRecord)
            assert (record.key, record.timestamp_ms) == (decoded.key, decoded.window.end_ms)
            self._publish(decoded, record.value)
        (self.commit,) = step.commit
        self._require_nothing_passed(self.commit.offset)
        self.rollup.committed(step)

    def drain(self) -> list[RollupRecord]:
        """Commit everything that is due; returns what was published."""
        before = len(self.history)
        while (step := self.rollup.step()) is not None:
            assert self.rollup.step() is step
            self.take(step)
        return whole(map(decode_rollup, self.history[before:]), self.log)

    def checkpoint(self) -> bool:
        step = self.rollup.checkpoint()
        if step is not None:
            assert not step.publish
            self.take(step)
        return step is not None

    def finish(self, expire_ms: int | None = None) -> list[RollupRecord]:
        """Read all, publish all, let spans expire; returns what was published last."""
        self.read()
        published = self.drain()
        if expire_ms is not None:
            self.rollup.expire(expire_ms)
            published += self.drain()
        return published

    def _publish(self, record: RollupRecord, payload: bytes) -> None:
        place = place_of(record)
        if place in self.newest:
            before = decode(self.newest[place])
            assert isinstance(before, RollupRecord)
            assert record.revision > before.revision, "a revision went back, or was published twice"
            assert not before.complete
        self.newest[place] = payload
        self.history.append(payload)

    def _require_nothing_passed(self, offset: int) -> None:
        """Every release before the committed offset is in a published final record of the finest grain."""
        for payload in self.log[self.passed : offset]:
            record = decode(payload)
            if isinstance(record, Release) and record.pipeline == PIPELINE and record.partition == 0:
                grain = self.calendar.base if record.span is None else self.finest.get((record.epoch, record.span))
                if grain is None:
                    continue
                span = self.calendar.span(grain, record.window.start_ms)
                place = (record.epoch, grain, span.start_ms, span.end_ms, record.key)
                known = decode(self.newest[place])
                assert isinstance(known, RollupRecord)
                assert known.complete
        self.passed = max(self.passed, offset)


def place_of(record: RollupRecord) -> tuple[object, ...]:
    """What a revision replaces."""
    return record.epoch, record.grain, record.window.start_ms, record.window.end_ms, record.key


def run_of(calendar: Calendar, log: Iterable[bytes], **settings: Any) -> Run:
    return Run(calendar, list(log), **settings)
