"""Costs of a plan against what is really stored, encoded and selected."""

from decimal import Decimal

import numpy as np
import pytest
from support.seeded_coins import SeededCoins

from sfm_stream.planning.costs import release_bytes, selection_threshold, set_cells, window_bytes
from sfm_stream.privacy.selection import select, selection_table
from sfm_stream.sketch.hashing import hash_items
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.units import HOUR_MS
from sfm_stream.windows.store import WindowStore


@pytest.mark.parametrize(("shape", "n"), [(SketchShape(4096, 24), 10), (SketchShape(256, 16), 400)])
def test_an_open_window_holds_as_many_bytes_as_planned(shape, n):
    keys = 40
    store = WindowStore(shape)
    for key in range(keys):
        hashes = hash_items(f"{key} {i}" for i in range(n))
        rows = len(hashes)
        store.add(np.zeros(rows, np.int64), np.full(rows, key, np.int32), shape.cells_of(hashes), np.arange(rows))
    store.compact()
    assert store.raw_bytes() / keys == pytest.approx(window_bytes(shape, n), rel=0.02)


def test_a_key_of_very_many_items_has_a_bitmap():
    shape = SketchShape(64, 16)
    assert window_bytes(shape, 100_000) == 8 + shape.nbytes


def test_set_cells_of_no_and_of_very_many_items():
    shape = SketchShape(64, 16)
    assert set_cells(shape, 0) == 0
    assert set_cells(shape, 1) == pytest.approx(1)
    assert set_cells(shape, 1e9) == pytest.approx(shape.cells)


@pytest.mark.parametrize(("span", "span_ms"), [("5m", 300_000), ("hour", HOUR_MS), ("day", 24 * HOUR_MS)])
@pytest.mark.parametrize("count_epsilon", [Decimal(0), Decimal("0.1")])
def test_a_release_is_a_bitmap_and_some_hundred_bytes(span, span_ms, count_epsilon):
    shape = SketchShape(4096, 24)
    assert 80 < release_bytes(shape, span, span_ms, count_epsilon) - shape.nbytes < 200


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-9"), ("0.25", "1e-6")])
@pytest.mark.parametrize("chance", [0.5, 0.999])
def test_a_key_of_as_many_items_as_the_threshold_is_selected_so_often(epsilon, delta, chance):
    shape, trials = SketchShape(4096, 24), 4000
    items = selection_threshold(shape, Decimal(epsilon), Decimal(delta), chance)
    table, coins = selection_table(Decimal(epsilon), Decimal(delta)), SeededCoins(7)
    cells = round(set_cells(shape, items))
    often = sum(select(cells, table, coins) for _ in range(trials)) / trials
    seldom = sum(select(cells - 1, table, coins) for _ in range(trials)) / trials
    bound = 4.5 * np.sqrt(0.25 / trials) if chance == 0.5 else 4.5 * np.sqrt(0.001 / trials)
    assert seldom - bound < chance < often + bound


def test_where_a_sketch_has_too_few_cells_no_number_of_items_is_enough():
    assert selection_threshold(SketchShape(16, 2), Decimal("0.01"), Decimal("1e-12"), 0.5) == np.inf
