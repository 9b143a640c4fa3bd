"""What one process counted and what it dropped."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sfm_stream.types import Reason


@dataclass(slots=True)
class IngestReport:
    """What this process did, for the operator's eyes: exact numbers, outside the guarantee.

    released: records of windows that an earlier run released. finished: the input was counted whole before.
    """

    read: int = 0
    counted: int = 0
    released: int = 0
    dropped: Counter[Reason] = field(default_factory=Counter)
    releases: int = 0
    open_windows: int = 0
    closed_through_ms: int | None = None
    finished: bool = False
