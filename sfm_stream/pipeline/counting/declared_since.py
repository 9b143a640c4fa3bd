"""From which window on a record of a declared key counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfm_stream.events.key_table import KeyTable
from sfm_stream.pipeline.counting.plan import CountingPlan
from sfm_stream.privacy.key_rules import DeclaredKeys
from sfm_stream.types import EventColumns, Reason


class DeclaredSince:
    """The times from which the keys of a table are declared, if any of them is declared later than from the start."""

    def __init__(self, plan: CountingPlan, keys: KeyTable) -> None:
        self._since_ms: NDArray[np.int64] | None = None
        """Shape (keys,): by key id."""
        if isinstance(plan.keys, DeclaredKeys):
            since = plan.keys.effective
            if any(since[key] > plan.first_border_ms for key in keys):
                self._since_ms = np.array([since[key] for key in keys], np.int64)

    def judge(self, columns: EventColumns, starts: NDArray[np.int64], reasons: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The reasons, with rows marked whose key takes effect behind the start of their window. All shapes (rows,)."""
        if self._since_ms is None:
            return reasons
        rows = np.flatnonzero(reasons == Reason.OK)
        marked = reasons.copy()
        marked[rows[starts[rows] < self._since_ms[columns.key_ids[rows]]]] = Reason.KEY_NOT_DECLARED
        return marked
