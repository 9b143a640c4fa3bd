"""Rows of answers, as a pipeline gives them, for pages."""

from __future__ import annotations

import math

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.estimation.estimate import Estimate, Status
from sfm_stream.types import Window
from sfm_stream.units import HOUR_MS

START_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""


def estimate(value: float, low: float, high: float, status: Status = Status.OK) -> Estimate:
    error = (high - low) / 4 if math.isfinite(high) else math.inf
    return Estimate(value, error, low, high, status, unclamped=value)


def row(number: int, made: Estimate, complete: bool = True, key: tuple = ("/",)) -> AnswerRow:
    """The row of the hour with this number from START_MS on."""
    start_ms = START_MS + number * HOUR_MS
    window = Window(start_ms, start_ms + HOUR_MS)
    return AnswerRow(key, "hour", window, made, 1.0, "raw", {"hour": 1}, 1, complete, 0, (), 1)
