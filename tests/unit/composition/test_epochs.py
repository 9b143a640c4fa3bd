"""Where an epoch ends, and where the next one may begin, from the committed states of several released spans."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.embedded_runs import write_config
from support.rollup_runs import at

from sfm_stream.composition.epochs import epoch_end_ms
from sfm_stream.config.config import Config, load_config
from sfm_stream.errors import StateError
from sfm_stream.types import PartitionState, SpanProgress
from sfm_stream.units import FOREVER_MS

NOON, MIDNIGHT = at("2026-01-05T12:00"), at("2026-01-06")


def config_of(folder: Path, start: str, epoch: int = 2) -> Config:
    (folder / "in.jsonl").write_text("")
    return load_config(write_config(folder, epoch=epoch, start=start, order='order = "time"'))


def state(*spans: SpanProgress, start_ms: int = at("2026-01-01")) -> PartitionState:
    return PartitionState("0123", 1, "in", start_ms, 1 << 60, spans, -1, 0)


HALF_A_DAY = state(SpanProgress("15m", NOON), SpanProgress("hour", NOON), SpanProgress("day", at("2026-01-05")))


def test_a_day_that_is_open_does_not_hold_the_next_epoch_back(tmp_path):
    """Neither epoch covers it whole, so neither releases it."""
    assert epoch_end_ms(config_of(tmp_path, "2026-01-05T12:00:00Z"), {1: HALF_A_DAY}) == FOREVER_MS


@pytest.mark.parametrize(
    "drawn",
    [
        state(SpanProgress("15m", MIDNIGHT), SpanProgress("day", at("2026-01-05"))),
        state(SpanProgress("15m", NOON, b"\x91\xa1a", NOON + 900_000), SpanProgress("day", at("2026-01-05"))),
        state(SpanProgress("15m", NOON), SpanProgress("day", at("2026-01-05"), b"\x91\xa1a", MIDNIGHT)),
    ],
    ids=["a quarter that is closed", "a quarter in part", "a day in part"],
)
def test_an_epoch_begins_behind_all_that_any_span_has_drawn(tmp_path, drawn):
    with pytest.raises(StateError, match=r"set window\.start to a border of its windows \(15m\) not before 2026-01-0"):
        epoch_end_ms(config_of(tmp_path, "2026-01-05T12:00:00Z"), {1: drawn})
    assert epoch_end_ms(config_of(tmp_path, "2026-01-06T00:00:00Z"), {1: drawn}) == FOREVER_MS


def test_an_epoch_ends_where_the_next_one_begins_whatever_its_spans_are(tmp_path):
    later = state(SpanProgress("hour", NOON), start_ms=NOON)
    assert epoch_end_ms(config_of(tmp_path, "2026-01-01T00:00:00Z", epoch=1), {2: later}) == NOON
