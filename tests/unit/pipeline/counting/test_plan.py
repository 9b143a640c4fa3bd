"""What one pipeline counts: the span that is priced is the span whose windows are released."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.counting_runs import plan_of

from sfm_stream.config.config import parse_config
from sfm_stream.errors import StateError

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
    assert (plan.span.size_ms, plan.span.epsilon) == (1_800_000, config.settings.privacy.epsilon)
    assert (plan.span.flip_threshold, plan.span.shape) == (config.flip_threshold, config.shape)


def test_windows_of_another_size_than_the_span_are_refused():
    plan = plan_of(size=10)
    with pytest.raises(StateError, match="windows of a plan have 20ms, its released span has 10ms"):
        replace(plan, windows=plan_of(size=20).windows)


def test_a_reader_of_one_span_refuses_several():
    plan = plan_of(size=10)
    with pytest.raises(ValueError, match="too many values"):
        _ = replace(plan, spans=(plan.span, plan.span)).span
