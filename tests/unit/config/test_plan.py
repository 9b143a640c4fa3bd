"""What a configuration makes of the clocks: the margin of windows, and what an epoch is bound to."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfm_stream.config.config import parse_config

FILES = """
[input]
path = "in.jsonl"
[output]
path = "out.sqlite"
"""
CLUSTER = """
[kafka]
bootstrap = ["localhost:9092"]
topic = "views"
timestamps = "{}"
"""


def configured(ends, margin="7s"):
    text = f"""
[pipeline]
id = "visits"
[event]
key = "page"
item = "user"
time = "at"
[window]
size = "1m"
grace = "10s"
clock_margin = "{margin}"
[privacy]
epsilon = 1
keys = "presence_is_public"
max_epsilon_per_item_day = 100000
{ends}
"""
    return parse_config(text, Path("."))


@pytest.mark.parametrize(
    ("ends", "margin_ms"),
    [(FILES, None), (CLUSTER.format("create_time"), None), (CLUSTER.format("log_append_time"), 7000)],
    ids=["files", "create_time", "log_append_time"],
)
def test_windows_wait_for_slow_clocks_where_the_log_gives_arrival_times(ends, margin_ms):
    assert configured(ends).plan(1, 0).windows.margin_ms == margin_ms


@pytest.mark.parametrize(
    ("ends", "bound"),
    [(FILES, False), (CLUSTER.format("create_time"), False), (CLUSTER.format("log_append_time"), True)],
    ids=["files", "create_time", "log_append_time"],
)
def test_an_epoch_is_bound_to_its_margin_where_windows_wait_for_it(ends, bound):
    differs = configured(ends).fingerprint(3) != configured(ends, "8s").fingerprint(3)
    assert differs == bound
