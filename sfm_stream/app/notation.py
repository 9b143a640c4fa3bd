"""How times, keys and numbers are written for programs: in JSON and in tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from sfm_stream.types import KeyPart


def instant(time_ms: int) -> str:
    """ISO 8601 in UTC, to the second where that is exact."""
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds" if time_ms % 1000 else "seconds").replace("+00:00", "Z")


def key_json(key: Sequence[KeyPart]) -> list[str | int]:
    """A published key for programs; bytes as "0x" and hex digits."""
    return [f"0x{part.hex()}" if isinstance(part, bytes) else part for part in key]


def finite(value: float) -> float | None:
    """None for infinity, which JSON does not have."""
    return value if math.isfinite(value) else None
