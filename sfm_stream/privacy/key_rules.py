"""Which keys may appear: the three values of `privacy.keys` (docs/privacy.md)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfm_stream.types import KeyValue


@dataclass(frozen=True, slots=True)
class DeclaredKeys:
    """A public list: each key is published in every window from its effective time on, empty or not.

    effective: key -> first window start in ms.
    """

    effective: dict[KeyValue, int]


@dataclass(frozen=True, slots=True)
class SelectedKeys:
    """Keys appear by private selection. table: thresholds by popcount (privacy/selection.py)."""

    epsilon: Decimal
    delta: Decimal
    table: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class PresenceIsPublic:
    """The operator asserts that which keys had at least one item in each window is public."""


KeyRule: TypeAlias = DeclaredKeys | SelectedKeys | PresenceIsPublic
