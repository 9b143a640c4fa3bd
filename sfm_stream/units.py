"""Constants that several packages share: lengths of time, grains of spans, bounds of integers, names of topics."""

from __future__ import annotations

from typing import Final

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
QUARTER_MS: Final = 15 * MINUTE_MS
HOUR_MS: Final = 4 * QUARTER_MS
DAY_MS: Final = 24 * HOUR_MS
SHORTEST_DAY_MS, LONGEST_DAY_MS = 22 * HOUR_MS, 26 * HOUR_MS
"""Bounds of a local day: a zone may move its clock by up to two hours."""
FOREVER_MS: Final = 1 << 62
"""Later than every other time; stands for an end that is not set."""

GRAINS: Final = ("quarter", "hour", "day")
"""The spans that windows are rolled up into, the finest first. A span is a union of spans of any finer grain."""
PUBLISHED_GRAINS: Final = (*GRAINS, "week", "month")
"""The grains of published roll-ups; of weeks and months only those that are released from raw."""

CALENDAR_UNITS: Final = ("day", "week", "month")
"""The windows that a zone decides, by length. A week begins on Monday."""

INT31_MAX: Final = (1 << 31) - 1
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1

SKETCHES, ROLLUPS, DEAD_LETTERS = "sketches", "rollups", "dead-letters"
"""The topics of a pipeline inside this package; a transport has the real names."""

MAX_BATCH_BYTES = 128 << 20
"""Of the records of one batch of Kafka, decompressed. A batch of more is refused."""
