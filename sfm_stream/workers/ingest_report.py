"""What one process counted and dropped."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sfm_stream.types import Reason


@dataclass(slots=True)
class IngestReport:
    """Exact numbers of one process, for the operator alone: they are outside the guarantee.

    read, counted, dropped: records. released: records of windows that an earlier run released. releases: number of
    releases committed. open_windows, closed_through_ms: as of the last checkpoint. finished: an earlier run counted the
    whole input.
    """

    read: int = 0
    counted: int = 0
    released: int = 0
    dropped: Counter[Reason] = field(default_factory=Counter)
    releases: int = 0
    open_windows: int = 0
    closed_through_ms: int | None = None
    finished: bool = False
