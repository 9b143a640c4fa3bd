"""What a plan costs besides privacy: bytes that are published, memory, and when a key is selected."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np

from sfm_stream.estimation.occupancy import Occupancy
from sfm_stream.privacy.selection import selection_table
from sfm_stream.sketch.bernoulli import WORD64
from sfm_stream.sketch.sfm import NoisyCount, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import Window
from sfm_stream.units import DAY_MS
from sfm_stream.wire.codec import encode
from sfm_stream.wire.keys import encode_key
from sfm_stream.wire.records import Release

KEY_BYTES = 86
"""What an open key takes beside its cells, without its text, with the Python kernel; the compiled one takes less than
half of it (docs/performance.md, "Memory").
"""
WINDOW_KEY_BYTES, CELL_BYTES = 8, 4
"""What each open window holds of a key beside its cells, and what it holds of a cell (windows/store.py)."""
RECORDS_PER_S = 200_000
"""Records that are read again in a CPU second (docs/performance.md, "On Kafka", restart)."""

_SOME_TIME_MS = 20_000 * DAY_MS


def set_cells(shape: SketchShape, n: float) -> float:
    """Expected number of cells that n distinct items set."""
    empty = Occupancy.at(shape, np.array([float(n)])).empty[0]
    return float(shape.sizes @ (1.0 - empty))


def window_bytes(shape: SketchShape, n: float) -> float:
    """Expected bytes of a key with n items in one open window: a list of cells, or a bitmap where that is smaller."""
    return WINDOW_KEY_BYTES + min(CELL_BYTES * set_cells(shape, n), float(shape.nbytes))


def release_bytes(shape: SketchShape, span: str, span_ms: int, count_epsilon: Decimal) -> int:
    """Bytes of the record of one release of a key of 16 characters, in a pipeline with a name of 16.

    span, span_ms: the name of the span and a length that it has. count_epsilon: 0 for a release without a count.
    """
    count = NoisyCount(0, count_epsilon) if count_epsilon else None
    sketch = SfmSketch(shape, 1 << 62, "xxh64", bytes(shape.nbytes), count)
    window = Window(_SOME_TIME_MS, _SOME_TIME_MS + span_ms)
    return len(encode(Release("p" * 16, 1, 0, 1, window, encode_key("k" * 16), "removed", sketch, span)))


def selection_threshold(shape: SketchShape, epsilon: Decimal, delta: Decimal, chance: float) -> float:
    """The whole number of items from which a key is published with this chance, 0 < chance < 1; may be infinite.

    Private selection looks at the number of set cells (privacy/selection.py), taken here as what is to be expected.
    """
    wanted = int(np.searchsorted(selection_table(epsilon, delta), np.uint64(int(chance * (1 << WORD64.bits)))))
    low, high = 0, wanted
    while set_cells(shape, high) < wanted - 0.5:
        low, high = high, 2 * high
        if high > shape.capacity:
            return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if set_cells(shape, middle) >= wanted - 0.5 else (middle, high)
    return float(high)
