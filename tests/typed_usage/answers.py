"""How `sfm_stream.answers` is used, for mypy: each name with its types. Its tests ask pipelines that ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_type

import pandas
import polars
import pyarrow

from sfm_stream import ConfigError
from sfm_stream.answers import AnswerTable, Asked, PublishedAnswers, open_answers


def questions(views: PublishedAnswers) -> Iterator[AnswerTable]:
    home, news = Asked(keys=["/home"], last="7d"), Asked(keys=["/news"])
    yield views.estimates(keys=["/home"], by="day", since="2026-01-01", until="2026-01-08")
    yield views.top(10, last="7d")
    yield views.compare(home, news)
    yield views.pair(home, news)
    assert_type(views.keys("home"), Iterator[str])
    assert_type(views.statement(), str)


def tables(table: AnswerTable) -> None:
    assert_type(table.to_arrow(), pyarrow.Table)
    assert_type(table.to_pandas(), pandas.DataFrame)
    assert_type(table.to_polars(), polars.DataFrame)


def answers() -> None:
    try:
        with open_answers("app-that-is-not-there.toml") as views:
            for table in questions(views):
                tables(table)
    except ConfigError:
        return
    raise AssertionError("a configuration that is not there was read")
