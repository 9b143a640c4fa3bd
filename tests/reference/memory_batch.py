"""Records in memory, as a transport would hand them over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class MemoryBatch:
    """Consecutive records of one partition; `arrival_ms` None where arrival is event time."""

    records: Sequence[bytes | None]
    arrival_ms: Sequence[int] | None = None
    first: int = 0
    partition: int = 0

    @property
    def next_offset(self) -> int:
        return self.first + len(self.records)

    @property
    def count(self) -> int:
        return len(self.records)

    def offsets(self) -> NDArray[np.int64]:
        return np.arange(self.first, self.next_offset)

    def arrivals(self) -> NDArray[np.int64] | None:
        return None if self.arrival_ms is None else np.array(self.arrival_ms, np.int64)

    def keys(self) -> list[bytes | None]:
        return [None] * self.count

    def values(self) -> list[bytes | None]:
        return list(self.records)
