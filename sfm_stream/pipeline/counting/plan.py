"""The counting plan: what one pipeline counts and how. It is made from a validated configuration."""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.errors import StateError
from sfm_stream.privacy.key_rules import KeyRule
from sfm_stream.privacy.released_span import ReleasedSpan, names_in_records
from sfm_stream.readable import duration
from sfm_stream.sketch.hashing import ItemHash
from sfm_stream.windows.grid import CalendarGrid, Grid
from sfm_stream.windows.tumbling import Tumbling


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits at which a worker stops. Each is the setting of the same name in [limits]."""

    max_gap_windows: int = 10_000
    max_consecutive_invalid: int = 10_000
    max_open_keys: int = 5_000_000
    max_raw_bytes: int = 4 << 30
    max_transaction_bytes: int = 8 << 20


@dataclass(frozen=True, slots=True)
class CountingPlan:
    """Everything that decides what a release contains.

    spans: what is released, the same that the budget was made of, the base span first. windows: of the base span.
    coarser: the grid of each further span; every window of it is made of whole windows of the base span. unit:
    "removed" or "blanked" (docs/privacy.md). keys: in the plan of one partition of several, those of a declared list
    that it owns.
    """

    pipeline: str
    epoch: int
    partitions: int
    spans: tuple[ReleasedSpan, ...]
    item_hash: ItemHash
    windows: Tumbling
    unit: str
    keys: KeyRule
    fingerprint: str
    limits: Limits = Limits()
    coarser: tuple[Grid, ...] = ()

    def __post_init__(self) -> None:
        priced = [span.size_ms or span.name for span in self.spans]
        counted = [_length(grid) for grid in (self.windows.grid, *self.coarser)]
        if priced != counted:
            raise StateError(
                f"the windows of a plan are of {_listed(counted)}, its released spans of {_listed(priced)}: what is "
                "priced is not what would be released"
            )

    @property
    def counted(self) -> tuple[tuple[ReleasedSpan, Tumbling], ...]:
        """Each span and its windows, the base span first."""
        windows = (self.windows, *(self.windows.around(grid) for grid in self.coarser))
        return tuple(zip(self.spans, windows, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the spans as every record has them; none where records are of version 1 of the format."""
        return names_in_records(self.spans)

    @property
    def first_border_ms(self) -> int:
        """The start of the first window of any span."""
        return min(windows.start_ms for _, windows in self.counted)


def _length(grid: Grid) -> int | str:
    return grid.unit if isinstance(grid, CalendarGrid) else grid.longest_ms


def _listed(lengths: list[int] | list[int | str]) -> str:
    return ", ".join(duration(length) if isinstance(length, int) else length for length in lengths)
