"""Drive one partition's counting pipeline by hand: plans, columns, tapes of coins, commits that fail, restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference.naive_windows import Row

from sfm_stream.errors import EntropyError
from sfm_stream.events.key_table import KeyTable
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.pipeline.counting.plan import CountingPlan, Limits
from sfm_stream.pipeline.counting.position import decode_state, first_progress
from sfm_stream.privacy.coins import Coins
from sfm_stream.privacy.epsilon import Epsilon, flip_threshold_of, parts_of
from sfm_stream.privacy.key_rules import DeclaredKeys, KeyRule, PresenceIsPublic, SelectedKeys
from sfm_stream.privacy.released_span import ReleasedSpan
from sfm_stream.privacy.selection import selection_table
from sfm_stream.readable import duration
from sfm_stream.sketch.hashing import XXH64
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import NO_TIME, Commit, EventColumns, KeyValue, PartitionState, Record, Step
from sfm_stream.units import FOREVER_MS
from sfm_stream.windows.grid import FixedGrid, fixed_size_ms
from sfm_stream.windows.tumbling import Tumbling
from sfm_stream.wire.codec import CloseMarker, Release, decode
from sfm_stream.wire.keys import MARKER_KEY

SMALL = SketchShape(16, 2)
FINGERPRINT = "0123456789abcdef"
SOURCE = "input"
EPSILON_SELECTION, DELTA_SELECTION = Decimal(1), Decimal("0.3")
SELECTED = SelectedKeys(EPSILON_SELECTION, DELTA_SELECTION, selection_table(EPSILON_SELECTION, DELTA_SELECTION))
PRESENCE = PresenceIsPublic()


def declared(*keys: KeyValue, since: dict[KeyValue, int] | None = None) -> DeclaredKeys:
    """Keys that count from the beginning, and keys that take effect later."""
    return DeclaredKeys({**dict.fromkeys(keys, 0), **(since or {})})


def span_of(name: str, epsilon: Epsilon = 1, shape: SketchShape = SMALL, count_share: Epsilon = 0) -> ReleasedSpan:
    for_bits, for_count = parts_of(epsilon, count_share)
    return ReleasedSpan(name, fixed_size_ms(name), Decimal(str(epsilon)), flip_threshold_of(for_bits), for_count, shape)


def plan_of(
    keys: KeyRule = PRESENCE,
    *,
    size: int = 10,
    grace: int = 0,
    skew: int = 0,
    start: int = 0,
    end: int = FOREVER_MS,
    shape: SketchShape = SMALL,
    epsilon: Epsilon = 1,
    count_share: Epsilon = 0,
    unit: str = "blanked",
    margin: int = 0,
    **limits: int,
) -> CountingPlan:
    """margin: of the clocks, where the unit is "removed"."""
    return CountingPlan(
        pipeline="test",
        epoch=1,
        partitions=1,
        spans=(span_of(duration(size), epsilon, shape, count_share),),
        item_hash=XXH64,
        windows=Tumbling(FixedGrid(size), grace, skew, start, end, margin if unit == "removed" else None),
        unit=unit,
        keys=keys,
        fingerprint=FINGERPRINT,
        limits=Limits(**limits),
    )


def first_state(plan: CountingPlan) -> PartitionState:
    """What a partition begins with."""
    return PartitionState(
        fingerprint=plan.fingerprint,
        partitions=plan.partitions,
        source=SOURCE,
        start_ms=plan.windows.start_ms,
        latest_ms=1 << 50,
        spans=first_progress(plan),
        clock_ms=NO_TIME,
        offset=0,
    )


def moved(state: PartitionState, **progress: Any) -> PartitionState:
    """The state with its base span closed through another border, or with another cursor."""
    base = replace(state.base, **progress)
    if base.cursor is not None:
        base = replace(base, cursor_end_ms=base.closed_through_ms + (fixed_size_ms(base.name) or 0))
    else:
        base = replace(base, cursor_end_ms=None)
    return replace(state, spans=(base, *state.spans[1:]))


def table_of(plan: CountingPlan) -> KeyTable:
    return KeyTable(plan.keys.effective if isinstance(plan.keys, DeclaredKeys) else None)


def columns_of(rows: Sequence[Row], keys: KeyTable, next_offset: int | None = None) -> EventColumns:
    """What an extractor makes of these rows: keys are interned for usable rows only, in their order."""
    return EventColumns(
        partition=0,
        next_offset=rows[-1].offset + 1 if next_offset is None else next_offset,
        offsets=np.array([row.offset for row in rows], np.int64),
        arrival_ms=np.array([row.arrival for row in rows], np.int64),
        event_ms=np.array([row.event for row in rows], np.int64),
        key_ids=np.array([-1 if row.reason else keys.intern(row.key) for row in rows], np.int32),
        cells=np.array([0 if row.reason else row.cell for row in rows], np.uint32),
        reasons=np.array([row.reason for row in rows], np.uint8),
    )


class Tape:
    """A given stream of digits, and how much of it is drawn: what is drawn is a function of the position alone."""

    def __init__(self, seed: int, position: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self._digits = self._random.integers(0, 256, 1 << 14, np.uint8)
        self.position = position

    def digits(self, count: int) -> NDArray[np.uint8]:
        while self.position + count > len(self._digits):
            more = self._random.integers(0, 256, len(self._digits), np.uint8)
            self._digits = np.concatenate([self._digits, more])
        drawn = self._digits[self.position : self.position + count]
        self.position += count
        return drawn


class Same:
    """Every digit is the same. 255: nothing is flipped or selected. 0: every cell is flipped, every key selected."""

    def __init__(self, digit: int) -> None:
        self.digit = digit

    def digits(self, count: int) -> NDArray[np.uint8]:
        return np.full(count, self.digit, np.uint8)


class Failing:
    """Coins that run out after so many requests, until they are mended."""

    def __init__(self, coins: Coins, requests: int) -> None:
        self.coins, self.left = coins, requests

    def digits(self, count: int) -> NDArray[np.uint8]:
        if self.left == 0:
            raise EntropyError("no randomness; nothing was released")
        self.left -= 1
        return self.coins.digits(count)


@dataclass
class Log:
    """Everything one run offered and committed."""

    steps: list[Step] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    """Of the tape, once each step was there."""
    offered: list[Record] = field(default_factory=list)
    """Every record that was ever handed out, sent again or not."""

    @property
    def records(self) -> list[Record]:
        return [record for step in self.steps for record in step.publish]

    @property
    def releases(self) -> list[Record]:
        return releases_of(self.records)

    @property
    def commits(self) -> list[Commit]:
        return [commit for step in self.steps for commit in step.commit]


def releases_of(records: Iterable[Record]) -> list[Record]:
    return [record for record in records if record.key != MARKER_KEY]


def markers_of(records: Iterable[Record]) -> list[CloseMarker]:
    decoded = [decode(record.value) for record in records if record.key == MARKER_KEY]
    return [marker for marker in decoded if isinstance(marker, CloseMarker)]


def covered(records: Iterable[Record]) -> tuple[int, int] | None:
    """(from, through) of all markers: one for each window, in order, without a gap or an overlap."""
    markers = markers_of(records)
    assert all(marker.through_ms - marker.start_ms == marker.window_ms for marker in markers)
    for before, after in pairwise(markers):
        assert before.through_ms == after.start_ms
    return (markers[0].start_ms, markers[-1].through_ms) if markers else None


def contents(records: Iterable[Record], inverted: bool = False) -> dict[tuple[int, bytes], set[int]]:
    """(window start, canonical key) -> lit cells of every release. inverted: all cells were flipped."""
    found = {}
    for record in releases_of(records):
        release = decode(record.value)
        assert isinstance(release, Release)
        bits = np.unpackbits(np.frombuffer(release.sketch.bits, np.uint8), bitorder="little")
        place = release.window.start_ms, release.key
        assert place not in found, "released twice"
        found[place] = set(np.flatnonzero(bits != inverted).tolist())
    return found


def drain(counter: WindowCounter, log: Log, tape: Tape | None = None, fails: Callable[[], int] = lambda: 0) -> None:
    """Perform every step that is due; fails() says how often the commit of a step fails before it is taken."""
    while (step := counter.step()) is not None:
        log.offered += step.publish
        for _ in range(fails()):
            again = counter.step()
            assert again is not None
            log.offered += again.publish
            step = again
        log.steps.append(step)
        log.positions.append(tape.position if tape is not None else 0)
        counter.committed(step)


def batches_of(rows: Sequence[Row], cuts: Iterable[int]) -> list[Sequence[Row]]:
    """The rows cut before each of these positions; no batch is empty."""
    places = sorted({0, len(rows), *(cut for cut in cuts if 0 < cut < len(rows))})
    return [rows[a:b] for a, b in pairwise(places)]


def run(
    plan: CountingPlan,
    batches: Iterable[Sequence[Row]],
    coins: Coins,
    *,
    state: PartitionState | None = None,
    finish: bool = True,
    step_every: int = 1,
) -> tuple[Log, list[int], WindowCounter]:
    """Count batches, performing what is due after every so many of them; (log, reasons of all rows, counter)."""
    keys, log, reasons = table_of(plan), Log(), []
    counter = WindowCounter(plan, 0, state or first_state(plan), keys, coins)
    tape = coins if isinstance(coins, Tape) else None
    for number, rows in enumerate(batches, 1):
        columns = columns_of(rows, keys)
        dropped = counter.add(columns)
        fate = dict(zip(dropped.offsets.tolist(), dropped.reasons.tolist(), strict=True))
        reasons += [fate.get(row.offset, 0) for row in rows]
        if number % step_every == 0:
            drain(counter, log, tape)
    if finish:
        counter.finish()
    drain(counter, log, tape)
    return log, reasons, counter


def state_in(step: Step) -> PartitionState:
    (commit,) = step.commit
    return decode_state(commit)
