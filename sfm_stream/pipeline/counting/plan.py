"""The counting plan: what one pipeline counts and how. It is made from a validated configuration."""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.errors import StateError
from sfm_stream.privacy.key_rules import KeyRule
from sfm_stream.privacy.released_span import ReleasedSpan, only
from sfm_stream.readable import duration
from sfm_stream.sketch.hashing import ItemHash
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

    spans: what is released, the same that the budget was made of. windows: of the one span. unit: "removed" or
    "blanked" (docs/privacy.md). keys: in the plan of one partition of several, those of a declared list that it owns.
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

    def __post_init__(self) -> None:
        if self.windows.size_ms != self.span.size_ms:
            raise StateError(
                f"the windows of a plan have {duration(self.windows.size_ms)}, its released span has "
                f"{duration(self.span.size_ms)}: what is priced is not what would be released"
            )

    @property
    def span(self) -> ReleasedSpan:
        """The one span that is released."""
        return only(self.spans)
