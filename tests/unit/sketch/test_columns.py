"""Columns of a notebook: what is missing is no item in any container, and what is no column is refused."""

from __future__ import annotations

import datetime
import math
import uuid
from collections import Counter, OrderedDict, deque
from decimal import Decimal
from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfm_stream import PcsaSketch, SketchShape, flip
from sfm_stream.errors import EpsilonError, ItemError, ShapeError
from sfm_stream.methods.layouts import BloomFilter, LinearCounting, LiquidLegions
from sfm_stream.privacy.selection import parse_delta

SHAPE = SketchShape(1024, 16)


def cells(column):
    return PcsaSketch(SHAPE).add(column).bits.tobytes()


WORDS = ["ann", "bob", "", "0"]
NUMBERS = [3, 1, 0, 2**53 + 1]
FLOATS = [0.5, -0.0, 3.0, math.inf]
WITHOUT = {
    "list": list,
    "tuple": tuple,
    "deque": deque,
    "generator": iter,
    "dict keys": lambda values: dict.fromkeys(values).keys(),
    "numpy": np.array,
    "numpy objects": lambda values: np.array(values, object),
    "pandas": pd.Series,
    "pandas objects": lambda values: pd.Series(values, dtype=object),
    "pandas index": pd.Index,
    "pandas categories": lambda values: pd.Series(values).astype("category"),
    "polars": pl.Series,
    "arrow": pa.array,
    "arrow chunks": lambda values: pa.chunked_array([values[:1], values[1:]]),
}


@pytest.mark.parametrize("values", [WORDS, NUMBERS, FLOATS], ids=["text", "integers", "floats"])
@pytest.mark.parametrize("container", WITHOUT)
def test_every_container_holds_the_same_items(container, values):
    assert cells(WITHOUT[container](values)) == cells(values)


@pytest.mark.parametrize("container", [set, frozenset])
def test_sets(container):
    assert cells(container(WORDS)) == cells(WORDS)


MISSING = {
    "list, None": lambda values: [*values, None],
    "list, NaN": lambda values: [math.nan, *values],
    "list, numpy's NaN": lambda values: [*values, np.float64("nan"), np.float32("nan")],
    "list, NaT and NA": lambda values: [*values, pd.NaT, pd.NA, np.datetime64("NaT"), np.timedelta64("NaT")],
    "list, decimal NaN": lambda values: [*values, Decimal("NaN")],
    "list, masked": lambda values: [*values, np.ma.masked],
    "generator": lambda values: (value for value in [None, *values, math.nan]),
    "set": lambda values: {*values, None, math.nan},
    "numpy objects": lambda values: np.array([*values, None, math.nan], object),
    "numpy masked": lambda values: np.ma.array([*values, values[0]], mask=[False] * len(values) + [True]),
    "pandas objects": lambda values: pd.Series([*values, None, math.nan, pd.NA], dtype=object),
    "pandas": lambda values: pd.Series([*values, None], dtype="string" if values is WORDS else "Int64"),
    "pandas categories": lambda values: pd.Series([*values, None], dtype=object).astype("category"),
    "polars": lambda values: pl.Series([*values, None]),
    "arrow": lambda values: pa.array([*values, None]),
    "arrow chunks": lambda values: pa.chunked_array([values, pa.array([None], pa.array(values).type)]),
}


@pytest.mark.parametrize("values", [WORDS, NUMBERS], ids=["text", "integers"])
@pytest.mark.parametrize("container", MISSING)
def test_what_is_missing_is_no_item_in_any_container(container, values):
    assert cells(MISSING[container](values)) == cells(values)


@pytest.mark.parametrize(
    "column",
    [
        [*FLOATS, math.nan, None],
        np.array([*FLOATS, math.nan]),
        np.array([0.5, math.nan], np.float32),
        pd.Series([*FLOATS, math.nan]),
        pd.Series([*FLOATS, None], dtype="Float64"),
        pl.Series([*FLOATS, math.nan, None]),
        pa.array([*FLOATS, math.nan, None]),
    ],
    ids=lambda column: type(column).__module__ + "." + str(getattr(column, "dtype", "")),
)
def test_nan_among_floats_is_missing_too(column):
    assert cells(column) == cells([0.5] if len(column) == 2 else FLOATS)


def test_nothing_but_missing_values_is_an_empty_set():
    for column in ([None, math.nan], np.array([math.nan]), pd.Series([None]), pl.Series([None]), pa.nulls(3), []):
        assert PcsaSketch(SHAPE).add(column).popcount() == 0


def test_pandas_turns_integers_with_a_gap_into_floats_and_those_are_other_items():
    """Not ours to undo: 1 and 1.0 are two items. The extension type keeps integers."""
    assert cells(pd.Series([1, 2, None])) == cells([1.0, 2.0]) != cells([1, 2])
    assert cells(pd.Series([1, 2, None], dtype="Int64")) == cells([1, 2])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"user": WORDS}, "mapping.*keys.*values"),
        (OrderedDict(a=1), "mapping"),
        (Counter(WORDS), "mapping"),
        (MappingProxyType({"a": 1}), "mapping"),
        (pd.DataFrame({"user": WORDS}), "table .*DataFrame.*choose a column"),
        (pl.DataFrame({"user": WORDS}), "table .*DataFrame.*choose a column"),
        (pl.LazyFrame({"user": WORDS}), "table .*LazyFrame"),
        (pa.table({"user": WORDS}), "table .*Table"),
        (pa.record_batch({"user": WORDS}), "table .*RecordBatch"),
        (np.zeros((2, 2)), "table .*ndarray"),
        (np.array(5), "table .*ndarray"),
        (np.zeros(2, [("user", "i8"), ("page", "i8")]), "table .*ndarray"),
        ("ann", "one text or bytes value; wrap it in a list"),
        (b"ann", "one text or bytes value"),
        (7, "one int; wrap it in a list"),
        (None, "one NoneType"),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__module__ + "." + type(value).__name__,
)
def test_what_is_no_column_is_refused_and_adds_nothing(table, words):
    sketch = PcsaSketch(SHAPE)
    with pytest.raises(ItemError, match=words) as caught:
        sketch.add(table)
    assert "ann" not in str(caught.value)
    assert sketch.popcount() == 0


NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    "column",
    [
        [uuid.UUID(int=1)],
        [NOW],
        [NOW.date()],
        [datetime.timedelta(1)],
        [Decimal("1.5")],
        [True],
        [np.bool_(True)],
        [["nested"]],
        [{"a": 1}],
        np.array(["2026-01-01"], "M8[D]"),
        pd.Series([NOW]),
        pd.Series([True, False]),
        pl.Series([NOW]),
        pa.array([NOW]),
        pl.Series([[1], [2]]),
    ],
    ids=lambda column: f"{type(column).__module__}.{type(column[0]).__name__}",
)
def test_types_without_a_stated_meaning_are_refused_with_the_remedy(column):
    with pytest.raises(ItemError, match=r"use text|use integers|map it to text"):
        PcsaSketch(SHAPE).add(column)


def test_numpy_scalars_are_items_like_python_ones():
    assert cells([np.int64(3), np.int8(1), np.uint16(0)]) == cells([3, 1, 0])
    assert cells([np.float64(0.5), np.float32(0.5), np.float16(3.0)]) == cells([0.5, 3.0])
    assert cells([np.str_("ann"), np.bytes_(b"bob")]) == cells(["ann", b"bob"])


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (np.float32(2), "2"),
        (np.float32(0.1), "0.1"),
        (np.float16(0.5), "0.5"),
        (np.float64(0.1), "0.1"),
        (np.int64(3), "3"),
        (np.uint8(16), "16"),
    ],
    ids=repr,
)
def test_numpy_scalars_are_numbers_in_epsilon(value, written):
    raw = PcsaSketch(SHAPE).add(WORDS)
    assert flip(raw, value).flip_threshold == flip(raw, Decimal(written)).flip_threshold
    assert parse_delta(np.float32(0.001)) == Decimal("0.001")


@pytest.mark.parametrize("value", [np.float32("nan"), np.float32("inf"), np.int64(0), np.int64(17), np.bool_(True)])
def test_numpy_scalars_out_of_range_are_refused(value):
    with pytest.raises(EpsilonError):
        flip(PcsaSketch(SHAPE), value)


def test_numpy_scalars_are_numbers_in_shapes():
    shape = SketchShape(np.int64(1024), np.uint8(16))
    assert shape == SHAPE
    assert hash(shape) == hash(SHAPE)
    assert type(shape.buckets) is int
    assert shape.bucket_bits == 10
    assert LinearCounting(np.int32(4096)) == LinearCounting(4096)
    assert BloomFilter(np.int64(4096), np.int8(3)) == BloomFilter(4096, 3)
    assert LiquidLegions(np.int64(4096), np.float32(10)) == LiquidLegions(4096, 10.0)
    for wrong in (np.float64(1024), np.bool_(True), "1024", 1024.0):
        with pytest.raises(ShapeError, match="buckets: expected an integer"):
            SketchShape(wrong, 16)
