"""What one pipeline counts and how: the frozen product of a validated configuration."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sfm_stream.privacy.key_rules import KeyRule
from sfm_stream.sketch.hashing import ItemHash
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.windows.tumbling import Tumbling


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a worker stops rather than lose, double or distort a release."""

    max_gap_windows: int = 10_000
    max_consecutive_invalid: int = 10_000
    max_open_keys: int = 5_000_000
    max_raw_bytes: int = 4 << 30
    max_transaction_bytes: int = 8 << 20


@dataclass(frozen=True, slots=True)
class CountingPlan:
    """Everything that decides what a release contains. unit: "removed" or "blanked" (docs/privacy.md).

    keys: in the plan of one partition of several, those of a declared list that it owns.
    """

    pipeline: str
    epoch: int
    partitions: int
    shape: SketchShape
    item_hash: ItemHash
    windows: Tumbling
    epsilon: Decimal
    k: int
    unit: str
    keys: KeyRule
    fingerprint: str
    limits: Limits = Limits()
