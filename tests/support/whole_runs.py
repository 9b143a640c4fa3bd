"""Drive the counting of an input whole by hand: plans, and runs with kills between the releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reference.naive_windows import Row
from support.counting_runs import PRESENCE, Log, columns_of, drain, first_state, plan_of, state_in, table_of

from sfm_stream.pipeline.counting.plan import CountingPlan
from sfm_stream.pipeline.counting.whole import WholeCounter
from sfm_stream.privacy.coins import Coins
from sfm_stream.privacy.key_rules import KeyRule
from sfm_stream.types import PartitionState
from sfm_stream.units import FOREVER_MS
from sfm_stream.windows.grid import FixedGrid
from sfm_stream.windows.whole import Whole


def whole_plan(
    keys: KeyRule = PRESENCE,
    *,
    size: int = 10,
    start: int | None = None,
    until: int | None = None,
    end: int = FOREVER_MS,
    **arguments: Any,
) -> CountingPlan:
    """start, until: the configured borders; end: of the epoch."""
    unit = "removed" if start is not None and until is not None else "blanked"
    plan = plan_of(keys, size=size, **{"unit": unit, **arguments})
    return replace(
        plan, windows=Whole(FixedGrid(size), 0, 0, start or 0, end, None, start is not None, until, start is not None)
    )


def begin(plan: CountingPlan, coins: Coins, state: PartitionState | None = None) -> WholeCounter:
    """A counter at its first start, or going on from a committed state."""
    if state is not None:
        assert isinstance(plan.windows, Whole)
        plan = replace(plan, windows=replace(plan.windows, start_ms=state.start_ms, start_known=True))
    return WholeCounter(plan, 0, state or first_state(plan), table_of(plan), coins)


def read(counter: WholeCounter, batches: Sequence[Sequence[Row]]) -> list[int]:
    """Add all batches and finish; reasons of all rows, -1 for a row of a window that was released before."""
    reasons: list[int] = []
    for rows in batches:
        dropped = counter.add(columns_of(rows, counter.keys))
        fate = dict(zip(dropped.offsets.tolist(), dropped.reasons.tolist(), strict=True))
        reasons += [fate.get(row.offset, 0) for row in rows]
    counter.finish()
    return reasons


def run_whole(
    plan: CountingPlan, batches: Sequence[Sequence[Row]], coins: Coins, kills: Sequence[int] = ()
) -> tuple[Log, list[int]]:
    """(log, reasons of the first reading). kills: after so many committed steps each, the process dies."""
    log, state, first = Log(), None, None
    for limit in (*kills, None):
        counter = begin(plan, coins, state)
        reasons = read(counter, batches if state is None or state.offset == 0 else [])
        first = reasons if first is None else first
        if limit is None:
            drain(counter, log)
            break
        for _ in range(limit):
            step = counter.step()
            if step is None:
                break
            log.offered += step.publish
            log.steps.append(step)
            log.positions.append(0)
            counter.committed(step)
            state = state_in(step)
        # What is offered and not committed dies with the process.
        counter.step()
    return log, first or []
