"""Rows, plans and readings that the tests of one partition's counting share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st
from reference.naive_windows import Row
from support.counting_runs import (
    PRESENCE,
    SELECTED,
    Log,
    Tape,
    columns_of,
    declared,
    first_state,
    table_of,
)

from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.pipeline.counting.plan import CountingPlan
from sfm_stream.privacy.coins import Coins
from sfm_stream.types import KeyValue, PartitionState, Reason, Record
from sfm_stream.wire.codec import CloseMarker, Release, decode
from sfm_stream.wire.keys import MARKER_KEY, encode_key

KEYS: list[KeyValue] = ["b", "a", "", 0, "aa", 7]
BY_BYTES = sorted(encode_key(key) for key in KEYS)
HUGE = 1 << 40
MODES = {
    "declared": declared(*KEYS, since={"late": 40}),
    "selected": SELECTED,
    "presence_is_public": PRESENCE,
}


def at(*rows: tuple[int, KeyValue, int]) -> list[Row]:
    """Rows (time, key, cell), arrival = event time, offsets 0, 1, ..."""
    return [Row(offset, time, time, key, cell) for offset, (time, key, cell) in enumerate(rows)]


def shown(records: Iterable[Record]) -> list[tuple[Any, ...]]:
    """(window start, key) of each release, ("marker", from, through) of each marker."""
    lines: list[tuple[Any, ...]] = []
    for record in records:
        content = decode(record.value)
        if record.key == MARKER_KEY:
            assert isinstance(content, CloseMarker)
            lines.append(("marker", content.start_ms, content.through_ms))
        else:
            assert isinstance(content, Release)
            lines.append((content.window.start_ms, record.key))
    return lines


def marks(start: int, through: int) -> list[tuple[str, int, int]]:
    """One marker for each window of 10."""
    return [("marker", border, border + 10) for border in range(start, through, 10)]


def counter_of(
    plan: CountingPlan, rows: Sequence[Row] = (), coins: Coins | None = None, state: PartitionState | None = None
) -> WindowCounter:
    """A counter that has added these rows; the tape of seed 1 where no coins are given."""
    keys = table_of(plan)
    counter = WindowCounter(plan, 0, state or first_state(plan), keys, coins or Tape(1))
    if rows:
        counter.add(columns_of(rows, keys))
    return counter


GAP = at((5, "a", 1), (1005, "b", 2))
BUSY = at(*((start + i, key, i) for start in range(0, 60, 10) for i, key in enumerate(KEYS)), (200, "z", 1))


def sizes_of(log: Log) -> list[int]:
    """Bytes of the records of each step."""
    return [sum(len(record.value) for record in step.publish) for step in log.steps]


def invalid(first: int, count: int, reason: Reason = Reason.KEY_MISSING) -> list[Row]:
    """Rows at consecutive offsets that cannot be counted."""
    return [Row(first + i, 5, 5, None, 0, int(reason)) for i in range(count)]


@st.composite
def histories(draw: st.DrawFn) -> tuple[str, dict[str, Any], list[Row], list[int], list[int], int]:
    """(mode, plan arguments, rows, first batching, second batching, seed of the tape)."""
    arguments = {
        "size": 10,
        "grace": draw(st.sampled_from([0, 7, 25])),
        "skew": draw(st.sampled_from([0, 15])),
        "start": draw(st.sampled_from([0, 30])),
        "count_share": draw(st.sampled_from([0, 0.5])),
        "max_transaction_bytes": draw(st.sampled_from([1, 200, 500, HUGE])),
    }
    rows: list[Row] = []
    now = draw(st.integers(0, 40))
    as_file = draw(st.booleans())
    for offset in range(draw(st.integers(1, 40))):
        now = max(0, now + draw(st.one_of(st.integers(-9, 9), st.integers(0, 25))))
        event = now if as_file else max(0, now + draw(st.integers(-30, 20)))
        reason = draw(st.sampled_from([0] * 5 + [Reason.ITEM_MISSING]))
        rows.append(Row(2 * offset, now, event, draw(st.sampled_from(KEYS)), draw(st.integers(0, 31)), int(reason)))
    cuts = st.lists(st.integers(0, len(rows)), max_size=10)
    return draw(st.sampled_from(list(MODES))), arguments, rows, draw(cuts), draw(cuts), draw(st.integers(0, 2**32))
