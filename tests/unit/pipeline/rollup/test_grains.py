"""What is published of which released span: a table of spans and zones, and what must hold of every choice of spans."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from support.rollup_runs import HOUR_MS, MINUTE_MS, QUARTER_MS, at

from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.pipeline.rollup.grains import grains_of, grains_of_one_size
from sfm_stream.units import GRAINS

UTC = calendar("UTC", MINUTE_MS, at("2026-01-01"), 2030)
KOLKATA = calendar("Asia/Kolkata", MINUTE_MS, at("2026-01-01"), 2030)
SIZES_MS = {
    "1m": MINUTE_MS,
    "5m": 5 * MINUTE_MS,
    "15m": QUARTER_MS,
    "20m": 20 * MINUTE_MS,
    "30m": 30 * MINUTE_MS,
    "hour": HOUR_MS,
    "day": None,
    "week": None,
    "month": None,
}


def made(zone, *names):
    """Span to (its grains, whether the first of them is the span itself), of spans of which something is made."""
    found = grains_of(zone, {name: SIZES_MS[name] for name in names})
    assert list(found) == list(names)
    return {name: (" ".join(each.grains), each.raw) for name, each in found.items() if each.grains}


@pytest.mark.parametrize(
    ("zone", "spans", "wanted"),
    [
        (UTC, "5m", {"5m": ("hour day", False)}),
        (UTC, "hour", {"hour": ("hour day", True)}),
        (UTC, "15m", {"15m": ("quarter hour day", True)}),
        (UTC, "day", {"day": ("day", True)}),
        (UTC, "5m day", {"5m": ("hour", False), "day": ("day", True)}),
        (UTC, "5m hour day", {"hour": ("hour", True), "day": ("day", True)}),
        (UTC, "5m hour", {"hour": ("hour day", True)}),
        (UTC, "5m 30m", {"30m": ("hour day", False)}),
        (UTC, "5m week", {"5m": ("hour day", False), "week": ("week", True)}),
        (UTC, "hour day week month", {name: (name, True) for name in ("hour", "day", "week", "month")}),
        (UTC, "day month", {"day": ("day", True), "month": ("month", True)}),
        # Days of Kolkata begin on half hours of UTC: hours of UTC do not fill them.
        (KOLKATA, "5m", {"5m": ("quarter hour day", False)}),
        (KOLKATA, "5m hour", {"5m": ("quarter day", False), "hour": ("hour", True)}),
        (KOLKATA, "5m 15m", {"15m": ("quarter hour day", True)}),
        (KOLKATA, "5m hour day", {"5m": ("quarter", False), "hour": ("hour", True), "day": ("day", True)}),
        (KOLKATA, "1m 5m 30m", {"5m": ("quarter day", False), "30m": ("hour", False)}),
        (KOLKATA, "30m day", {"30m": ("hour", False), "day": ("day", True)}),
    ],
)
def test_spans_from_raw_are_passed_on_and_the_rest_is_merged_from_the_coarsest(zone, spans, wanted):
    assert made(zone, *spans.split()) == wanted


@pytest.mark.parametrize("zone", [UTC, KOLKATA], ids=lambda zone: zone.zone)
def test_every_grain_has_one_source_which_fills_it(zone):
    for count in range(1, 5):
        for names in combinations(SIZES_MS, count):
            found = grains_of(zone, {name: SIZES_MS[name] for name in names})
            grains = [grain for each in found.values() for grain in each.grains]
            assert len(grains) == len(set(grains)), "one source for each grain"
            assert {"day", "week", "month", "hour"} & set(names) <= set(grains), "what is released is passed on"
            for name, each in found.items():
                assert list(each.grains) == sorted(each.grains, key=[*GRAINS, "week", "month"].index)
                assert not each.grains or each.raw == (name in each.grains or (name, each.finest) == ("15m", "quarter"))
                if each.size_ms is None:
                    assert each.grains == (name,), "nothing is summed from days, weeks and months"
                elif "day" in each.grains:
                    assert zone.base_ms % each.size_ms == 0
                if each.coarser:
                    finest = {"quarter": QUARTER_MS, "hour": HOUR_MS}[each.finest]
                    assert zone.base_ms % finest == 0 or each.coarser == ("hour",), "sums of the finest grain"


def test_without_names_everything_is_merged_from_the_one_span():
    for zone in (UTC, KOLKATA):
        one = grains_of_one_size(zone, 5 * MINUTE_MS)
        assert (one.grains, one.raw, one.size_ms) == (zone.grains, False, 5 * MINUTE_MS)


def test_the_table_of_the_documentation():
    """docs/rollups.md, row by row."""
    text = (Path(__file__).parents[4] / "docs" / "rollups.md").read_text()
    rows = text.split("| released, in a zone of whole hours |")[1].split("\n\n")[0].splitlines()[2:]
    assert len(rows) == 6
    for row in rows:
        spans, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        names = spans.replace("`", "").split(", ")
        found = grains_of(UTC, {name: SIZES_MS[name] for name in names})
        said = {}
        for grain, cell in zip(("quarter", "hour", "day"), cells, strict=False):
            said[grain] = cell.replace("`", "")
        said |= {grain: "passed on" for grain in ("week", "month") if f"{grain}s passed on" in cells[3]}
        wanted = dict.fromkeys(said, "")
        for name, each in found.items():
            for grain in each.grains:
                wanted[grain] = "passed on" if each.raw and grain == each.finest else f"merged of {name}"
        assert said == wanted, names
