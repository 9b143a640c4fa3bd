"""What one pipeline counts: the span that is priced is the span whose windows are released."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from support.counting_runs import plan_of

from sfm_stream.config.config import parse_config
from sfm_stream.errors import StateError
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.shape import SketchShape

CONFIG = """
pipeline.id = "p"
input.path = "in.jsonl"
event = { key = "page", item = "user", time = "at", time_unit = "ms" }
window = { size = "30m", grace = "5m", start = 2026-01-01T00:00:00Z }
privacy = { epsilon = 0.5, keys = "presence_is_public", max_epsilon_per_item_day = 1000 }
output.path = "out.sqlite"
"""


def test_a_plan_releases_what_its_budget_prices(tmp_path):
    config = parse_config(CONFIG, tmp_path)
    plan = config.plan(1, 0)
    assert plan.spans == config.budget.spans
    assert (plan.spans[0].size_ms, plan.spans[0].epsilon) == (1_800_000, config.settings.privacy.epsilon)
    assert (plan.spans[0].flip_threshold, plan.spans[0].shape) == (
        flip_threshold_of(Decimal("0.45")),  # a tenth pays for the count
        SketchShape(4096, 24),
    )


def test_windows_of_another_size_than_the_span_are_refused():
    plan = plan_of(size=10)
    with pytest.raises(StateError, match="windows of a plan are of 20ms, its released spans of 10ms"):
        replace(plan, windows=plan_of(size=20).windows)
