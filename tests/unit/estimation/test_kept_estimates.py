"""Estimates of small tallies of many kinds, kept in tests/golden/estimates.json (made by make_estimates.py there)."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfm_stream.estimation.estimate import estimate_many
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.sfm import NoisyCount
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally_histogram import TallyHistogram
from sfm_stream.sketch.window_sizes import WindowSizes

KEPT = json.loads((Path(__file__).parents[2] / "golden" / "estimates.json").read_text("utf-8"))


def tally(row: dict[str, Any]) -> TallyHistogram:
    counts = tuple(None if value is None else NoisyCount(value, Decimal("0.25")) for value in row["counts"])
    sizes = None if row["ones"] is None else WindowSizes(np.array(row["ones"], np.int32), counts)
    threshold = flip_threshold_of(Decimal(row["epsilon"]))
    return TallyHistogram(SketchShape(64, 12), threshold, "xxh64", row["releases"], np.array(row["cells"]), sizes)


def test_estimates_are_what_they_were() -> None:
    assert {row["status"] for row in KEPT} == {"ok", "empty", "saturated", "uninformative"}
    for row, found in zip(KEPT, estimate_many(list(map(tally, KEPT))), strict=True):
        figures = (found.value, found.standard_error, found.low, found.high, found.unclamped)
        kept = [math.inf if figure is None else figure for figure in row["figures"]]
        assert list(figures) == pytest.approx(kept, rel=1e-6, abs=1e-6)
        assert found.status == row["status"]
