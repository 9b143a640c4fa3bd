"""Checks that stop counting before it could lose, repeat or distort a release. Each raises StateError with a remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import StateError, UnusableRecords
from sfm_stream.events.key_table import KeyTable
from sfm_stream.pipeline.counting.plan import CountingPlan
from sfm_stream.readable import duration, instant
from sfm_stream.types import NO_TIME, EventColumns, Reason
from sfm_stream.windows.store import WindowStore
from sfm_stream.windows.whole import Whole

_IN_TIME = (
    'sort the input by time and set input.order = "time" and window.grace, so that windows close while it is read and '
    "not all of them are open at its end"
)
_FIRST_TIME_REASON = int(Reason.FUTURE)


class CountingLimits:
    """The checks of one partition. Its only state is how many unusable and misplaced records came in a row."""

    def __init__(self, plan: CountingPlan, partition: int) -> None:
        self._plan, self._partition = plan, partition
        self._invalid_run = self._misplaced_run = 0
        self._whole = isinstance(plan.windows, Whole)

    def go_on_from(self, before: CountingLimits) -> None:
        """Continue the counts of records in a row from the checks that ran before counting could begin."""
        self._invalid_run, self._misplaced_run = before._invalid_run, before._misplaced_run

    def require_steady(self, columns: EventColumns, clocks: NDArray[np.int64], idle_ms: int) -> None:
        """Stop if arrival times that the log gives step back by more than the clock margin.

        The window of such a record may be closed already, and other records would decide whether it is. clocks: those
        of Tumbling.clocks. idle_ms: the time before which no further record was expected to arrive.
        """
        windows = self._plan.windows
        margin_ms = windows.margin_ms
        if margin_ms is None or not len(clocks):
            return
        arrivals = columns.arrival_ms
        wrong = np.flatnonzero((arrivals < np.maximum(clocks - margin_ms, idle_ms)) & (arrivals != NO_TIME))
        if not len(wrong):
            return
        row = int(wrong[0])
        arrival, clock = int(arrivals[row]), int(clocks[row])
        where = f"partition {self._partition}, offset {int(columns.offsets[row])}"
        if arrival >= clock - margin_ms:
            raise StateError(
                f"{where}: it arrived at {instant(arrival)} by the clock of its broker, when that of this host less "
                f"window.clock_margin = {duration(margin_ms)} was at {instant(idle_ms)} already: they differ by more "
                "than the margin. Set the clocks right and start again"
            )
        behind = windows.grid.end(windows.grid.floor(clock + windows.max_future_skew_ms))
        raise StateError(
            f"{where}: arrival time steps back by {duration(clock - arrival)}, from {instant(clock)} to "
            f"{instant(arrival)}, more than "
            f"window.clock_margin = {duration(margin_ms)}: the clocks of the brokers differ. Set them right, raise "
            f"pipeline.epoch and set window.start to {instant(behind)} or a later window border, so that reading "
            "begins behind this record"
        )

    def require_no_gap(self, columns: EventColumns, clocks: NDArray[np.int64], clock_ms: int, due_ms: int) -> None:
        """Stop if the clock jumps over too many windows. clock_ms, due_ms: the clock and the last due border before."""
        windows, limit = self._plan.windows, self._plan.limits.max_gap_windows
        # Windows before this time are not closed by the jump: they lie before the epoch, or idle time has closed them.
        passed = max(clock_ms, due_ms + windows.grace_ms)
        jumps = np.diff(np.maximum(clocks, passed), prepend=passed)
        if len(jumps) and int(jumps.max()) > limit * windows.grid.longest_ms:
            row = int(jumps.argmax())
            raise StateError(
                f"partition {self._partition}, offset {int(columns.offsets[row])}: arrival time jumps by "
                f"{duration(int(jumps[row]))}, more than limits.max_gap_windows = {limit} windows. "
                "Raise the limit if the gap is real, else set window.start or remove the record"
            )

    def require_short_idling(self, due_ms: int, through_ms: int) -> None:
        """Stop if time alone would close too many windows at once: those from due_ms to through_ms."""
        limit = self._plan.limits.max_gap_windows
        count = self._plan.windows.grid.count(due_ms, through_ms)
        if count > limit:
            raise StateError(
                f"partition {self._partition}: {count} windows without a record would be closed at once, from "
                f"{instant(due_ms)} on, more than limits.max_gap_windows = {limit}. Raise the limit if they are to be "
                "published, else set window.start to a later border (in a new epoch, if this one has begun)"
            )

    def require_few_empty(self, starts: list[int], offsets: Mapping[int, int]) -> None:
        """Stop if too many windows without a record lie between two others, in an input that is counted whole.

        starts: those of the windows with records, ascending, framed by one before the first border and one behind the
        last. offsets: window start to the offset of a record in it.
        """
        grid, limit = self._plan.windows.grid, self._plan.limits.max_gap_windows
        for before, after in pairwise(starts):
            from_ms = grid.end(before)
            count = grid.count(from_ms, after)
            if count > limit:
                known = [f"offset {offsets[start]}" for start in (before, after) if start in offsets]
                raise StateError(
                    f"partition {self._partition}, {' and '.join(known)}: {count} windows without a record lie between "
                    f"{instant(from_ms)} and {instant(after)}, more than limits.max_gap_windows = {limit}; each "
                    "would be published. If a clock was wrong set event.earliest and event.latest, or window.start and "
                    "window.end, around the times that are to be counted; else raise the limit"
                )

    def require_valid(self, columns: EventColumns) -> None:
        """Stop on a long run of records that are unusable, or that are all in the wrong partition.

        Else a wrong field name would drop a whole topic, and a wrong partitioner would publish counts with few records.
        """
        reasons, limit = columns.reasons, self._plan.limits.max_consecutive_invalid
        if len(reasons) and not reasons.any():
            self._invalid_run = self._misplaced_run = 0
            return
        counted = (reasons == Reason.OK) | (reasons >= _FIRST_TIME_REASON)
        # A key outside the declared list says nothing against the [event] section: most keys may be outside. Nor does
        # it say that the topic is keyed well: it ends no run of misplaced keys.
        valid = counted | (reasons == Reason.KEY_NOT_DECLARED)
        in_place = counted[counted | (reasons == Reason.KEY_MISPLACED)]
        invalid, self._invalid_run = _longest_run(self._invalid_run, valid)
        misplaced, self._misplaced_run = _longest_run(self._misplaced_run, in_place)
        if invalid > limit:
            top, which = Reason(int(np.bincount(reasons[reasons != Reason.OK]).argmax())), "records"
        elif misplaced > limit:
            top, which = Reason.KEY_MISPLACED, "records with a declared key"
        else:
            return
        remedy = "Check the [event] section against the data (sfm-stream check)"
        if top == Reason.KEY_MISPLACED:
            remedy = (
                "The topic is not keyed by the counting key, or not as kafka.partitioner says: correct that, or "
                "copy it into one that is (sfm-stream repartition)"
            )
        raise UnusableRecords(
            f"partition {self._partition}, offset {int(columns.offsets[0])}: more than "
            f"limits.max_consecutive_invalid = {limit} {which} in a row are unusable, mostly {top.name.lower()}. "
            f"{remedy}"
        )

    def require_few_keys(self, keys: KeyTable) -> None:
        """Stop where a partition holds more keys than it may."""
        limits = self._plan.limits
        if len(keys) > limits.max_open_keys and not keys.fixed:
            remedy = _IN_TIME if self._whole else "shorten window.grace or window.size in a new epoch"
            raise StateError(
                f"partition {self._partition}: {len(keys)} keys are open, limits.max_open_keys = "
                f"{limits.max_open_keys}. Raise it, or {remedy}"
            )

    def require_memory(self, keys: KeyTable, stores: Sequence[WindowStore]) -> None:
        """Stop where a partition holds more keys or bytes than it may. stores: of all its spans."""
        self.require_few_keys(keys)
        limits, held = self._plan.limits, sum(store.raw_bytes() for store in stores)
        if held > limits.max_raw_bytes:
            for store in stores:
                store.compact()
            held = sum(store.raw_bytes() for store in stores)
        if held > limits.max_raw_bytes:
            remedy = f"or {_IN_TIME}" if self._whole else "use smaller sketches or more partitions"
            raise StateError(
                f"partition {self._partition}: raw sketches hold {held} bytes, limits.max_raw_bytes = "
                f"{limits.max_raw_bytes}. Raise it, {remedy}"
            )


def _longest_run(before: int, ends: NDArray[np.bool_]) -> tuple[int, int]:
    """(longest run of rows that do not end one, the run at the end), where `before` such rows came before these."""
    at = np.flatnonzero(ends)
    if not len(at):
        return before + len(ends), before + len(ends)
    return max(before + int(at[0]), int(np.diff(at, append=len(ends)).max()) - 1), len(ends) - 1 - int(at[-1])
