"""Which levels of a configuration are called noise, and what is said of them."""

import math
from decimal import Decimal

import pytest

from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.planning.forecast import PlannedSpan
from sfm_stream.planning.noise import noisy_levels
from sfm_stream.sketch.shape import SketchShape

UTC, KOLKATA = (calendar(zone, 1, 0) for zone in ("UTC", "Asia/Kolkata"))
SHAPE = SketchShape(4096, 24)


def lines(*spans, days=UTC, shape=SHAPE):
    return list(
        noisy_levels([PlannedSpan(name, Decimal(eps), Decimal(share), shape) for name, eps, share in spans], days)
    )


def levels(*spans, **more):
    return [line.split(" are noise: ")[0] for line in lines(*spans, **more)]


@pytest.mark.parametrize(
    ("spans", "noise"),
    [
        ([("hour", "4", "0")], []),
        ([("hour", "2", "0.1")], []),
        ([("1h", "1", "0")], ["days merged from 24 hours of epsilon 1"]),
        ([("hour", "0.5", "0.1")], ["days merged from 24 hours of epsilon 0.5"]),
        ([("15m", "1", "0.1")], ["days merged from 96 windows of 15m of epsilon 1"]),
        (
            [("5m", "1", "0.1")],
            ["hours merged from 12 windows of 5m of epsilon 1", "days merged from 288 windows of 5m of epsilon 1"],
        ),
        ([("5m", "1", "0.1"), ("day", "1", "0.2")], ["hours merged from 12 windows of 5m of epsilon 1"]),
        ([("5m", "1", "0.1"), ("hour", "2", "0")], []),
        ([("5m", "1", "0.1"), ("hour", "1", "0.1"), ("day", "0.5", "0.2")], []),
        ([("day", "0.5", "0")], []),
        ([("500ms", "3", "0.1"), ("hour", "3", "0.1")], []),
    ],
)
def test_levels_that_are_released_or_merged(spans, noise):
    assert levels(*spans) == noise


def test_quarters_where_a_zone_needs_them():
    assert levels(("1m", "1", "0.1"), ("day", "1", "0.1"), days=KOLKATA) == [
        "quarters merged from 15 windows of 1m of epsilon 1",
        "hours merged from 60 windows of 1m of epsilon 1",
    ]


def test_releases_themselves():
    small = SketchShape(64, 16)
    assert levels(("day", "0.05", "0"), shape=small) == ["days of epsilon 0.05"]
    assert levels(("day", "0.2", "0.5"), shape=small) == []


def test_a_line_says_how_bad_it_is_and_what_helps():
    (line,) = lines(("5m", "1", "0.1"), ("day", "1", "0.2"))
    a0 = 1 + 1 / (4 * math.sinh(0.45) ** 2)
    at_least = float(line.split("at least ")[1].split("%")[0]) / 100
    assert 1.2 < at_least / math.sqrt(a0**12 / 4096) < 1.5  # of one level alone at its best: e / 2 = 1.36
    assert line.endswith(
        '% of the number of items, whatever that is. Release them from raw ([[spans]] size = "hour"), or raise epsilon '
        "(sfm-stream plan says what that is worth)"
    )
    (line,) = lines(("hour", "0.5", "0"))
    assert "together, their bits are off by more than ten times the number of items, whatever that is." in line
