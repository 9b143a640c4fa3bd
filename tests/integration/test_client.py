"""The Python client: the same tables of a file, of topics and of a server."""

from __future__ import annotations

import math
import re
import socket
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow
import pytest
from fastapi import FastAPI
from support.embedded_runs import asked, run_here, write_config, write_events

from sfm_stream.answers import AnswerTable, Asked, PublishedAnswers, open_answers
from sfm_stream.config.config import load_config
from sfm_stream.errors import BrokerAway, ConfigError, NothingFound, QuestionError, StateError, UsageError
from sfm_stream.serve.http_server import HttpServer
from sfm_stream.serve.server import serving

PAGE = Path(__file__).resolve().parents[2] / "docs/client.md"
ZONE = "Europe/Berlin"
KEYS = [("de", "/home"), ("de", "/café"), ("fr", "/home"), ("fr", '"/odd, / one"')]


def events():
    start = round(datetime(2026, 3, 28, tzinfo=ZoneInfo(ZONE)).timestamp() * 1000)
    for hour in range(3 * 24 - 1):  # the Sunday has 23 hours
        for place, (site, page) in enumerate(KEYS):
            for n in range(30 - 5 * place):
                yield {"site": site, "page": page, "user": f"{hour % 20} {n}", "at": start + hour * 3_600_000 + n}


@pytest.fixture(scope="module")
def app(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("client")
    write_events(folder / "in.jsonl", events())
    config = write_config(
        folder,
        key='["site", "page"]',
        size="1h",
        zone=ZONE,
        start="2026-03-27T23:00:00Z",
        end="end = 2026-03-30T22:00:00Z",
        epsilon=8,
        buckets=256,
    )
    config.write_text(config.read_text() + '[[spans]]\nsize = "day"\nepsilon = 8\n')
    run_here(config)
    return config


@pytest.fixture(scope="module")
def views(app):
    with open_answers(app) as opened:
        yield opened


def tables(views: PublishedAnswers) -> dict[str, AnswerTable]:
    days = Asked(since="2026-03-28", until="2026-03-29"), Asked(since="2026-03-29", until="2026-03-30")
    return {
        "estimates": views.estimates(last="2d", by="day"),
        "joined": views.estimates(["de,/home", "fr,/home"], last="3d", joined=True),
        "lower bound": views.estimates(["de,/home"], last="1w"),
        "top": views.top(3, last="1d"),
        "compare": views.compare(*days),
        "one side": views.compare(Asked(["de,/home"], since="2026-04-02", until="2026-04-03"), Asked(last="1d")),
        "pair": views.pair(Asked(["de,/home"], last="1d"), Asked(["fr,/home"])),
    }


@pytest.fixture(scope="module")
def server(app) -> Iterator[HttpServer]:
    with serving([load_config(app)], "127.0.0.1:0") as served:
        yield served


@pytest.fixture(scope="module")
def from_server(server):
    with open_answers(f"http://{server.host}:{server.port}") as opened:
        yield opened


@pytest.mark.parametrize("count", [1.5, "3", True, None])
def test_a_number_of_keys_is_a_whole_number(views, count):
    with pytest.raises(QuestionError, match="count: expected a whole number of keys"):
        views.top(count, last="1d")


def test_a_server_gives_the_same_tables(views, from_server):
    here, there = tables(views), tables(from_server)
    assert from_server.terms == views.terms
    for name, rows in here.items():
        assert there[name].to_arrow().equals(rows.to_arrow()), name
        assert list(there[name]) == list(rows), name
        assert there[name].unanswered == rows.unanswered
    asked_for = ["de,/home", "de,/other"]
    unanswered = from_server.estimates(asked_for, last="2d").unanswered
    assert unanswered == views.estimates(asked_for, last="2d").unanswered != ()
    assert list(from_server.keys()) == list(views.keys())
    assert list(from_server.keys("CAFÉ")) == ["de / /café"]
    assert from_server.completeness() == views.completeness()
    assert from_server.statement() == views.statement()


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda views: views.estimates(last="7d", by="week"), QuestionError),
        (lambda views: views.estimates(since="soon"), QuestionError),
        (lambda views: views.top(0, last="1d"), QuestionError),
        (lambda views: views.estimates(["fr,/none"], last="1d"), NothingFound),
        (lambda views: views.compare(Asked(last="1d"), Asked()), QuestionError),
        (lambda views: views.pair(Asked(["de,/home"], last="2d"), Asked(last="1d")), QuestionError),
    ],
)
def test_errors_of_a_server_are_those_of_the_package(views, from_server, ask, error):
    for each in (views, from_server):
        with pytest.raises(error) as raised:
            ask(each)
        assert type(raised.value) is error
        assert "does the server run" not in str(raised.value)


def test_a_server_is_asked_for_a_pipeline_that_it_has(server):
    url = f"http://{server.host}:{server.port}"
    with open_answers(url, "views") as opened:
        assert opened.terms.pipeline == "views"
    with pytest.raises(NothingFound, match="no pipeline of this id; it has views"):
        open_answers(url, "clicks")


def test_what_is_no_server_of_answers_is_said():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(BrokerAway, match="does the server run"):
            open_answers(f"http://127.0.0.1:{bound.getsockname()[1]}")
    other = FastAPI()  # knows no pipelines, and says so in its own way
    listener = HttpServer(other, "serve.listen", "127.0.0.1:0")
    try:
        with pytest.raises(StateError, match=r"no answer of sfm-stream serve \(HTTP 404\)"):
            open_answers(f"http://{listener.host}:{listener.port}", "views")
    finally:
        listener.close()


def test_what_is_no_url_is_said():
    with pytest.raises(UsageError, match="not the URL of a server"):
        open_answers("http://\x00/")


def test_httpx_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(UsageError, match=r"pip install 'sfm-stream\[client\]'"):
        open_answers("http://127.0.0.1:1")


def test_rows_are_those_of_the_command_line(app, views):
    rows = views.estimates(["de,/home"], last="2d", by="day")
    assert list(rows) == asked(app, "--key", "de,/home", "--last", "2d", "--by", "day")
    assert (len(rows), rows.unanswered, rows[0]["key"]) == (2, (), ["de", "/home"])
    assert views.estimates(["de,/home", "de,/other"], last="2d").unanswered == (
        "de,/other: nothing is published for it in this span; there are others, such as de / /home, "
        "de / /café, fr / /home",
    )


def test_tables_of_the_three_libraries_have_the_same_values(views):
    for name, rows in tables(views).items():
        arrow, polars, pandas = rows.to_arrow(), rows.to_polars(), rows.to_pandas()
        assert arrow.column_names == polars.columns == list(pandas.columns) == list(rows.columns), name
        assert arrow.num_rows == len(polars) == len(pandas) == len(rows) > 0
        by_row = [[_plain(value) for value in row.values()] for row in arrow.to_pylist()]
        assert [[_plain(value) for value in row] for row in polars.iter_rows()] == by_row, name
        assert [[_plain(value) for value in row] for row in pandas.itertuples(index=False)] == by_row, name
        assert polars.to_arrow().column_names == arrow.column_names


def _plain(value: object) -> object:
    """Without what tells the libraries' empty places, numbers and times from each other."""
    if (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and math.isnan(value))
    ):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000), str(value.utcoffset())
    return float(value) if isinstance(value, int | float) else list(value) if isinstance(value, list) else str(value)


def test_columns_have_types_and_times_a_zone(views):
    table = views.estimates(last="2d", by="day").to_arrow()
    assert table.schema.field("window_start").type == pyarrow.timestamp("ms", tz=ZONE)
    first = table.to_pylist()[0]
    assert first["window_start"] == datetime(2026, 3, 29, tzinfo=ZoneInfo(ZONE))
    assert first["window_end"].utcoffset() != first["window_start"].utcoffset(), "clocks change on this day"
    assert {row["key_page"] for row in table.to_pylist()} == {page for _, page in KEYS}
    assert {row["key"] for row in table.to_pylist()} >= {"de / /home", 'fr / "\\"/odd, / one\\""'}
    (bound,) = views.estimates(["de,/home"], last="1w").to_arrow().to_pylist()
    assert (bound["high"], bound["status"]) == (math.inf, "lower_bound")
    (joined,) = views.estimates(["de,/home", "fr,/home"], last="3d", joined=True).to_arrow().to_pylist()
    assert (joined["key"], joined["key_site"], joined["keys"]) == (None, None, ["de / /home", "fr / /home"])


def test_what_is_not_known_of_a_difference_is_empty_or_without_limit(views):
    (row,) = tables(views)["one side"].to_arrow().to_pylist()
    assert (row["difference_low"], row["difference_high"]) == (-math.inf, row["second_high"])
    assert (row["first_status"], row["first_window_start"], row["difference_sign"]) == (None, None, None)
    assert (row["difference"], row["change"], row["first_estimate"]) == (None, None, None)
    assert row["difference_standard_error"] == math.inf


def test_an_empty_table_has_its_columns(views):
    rows = AnswerTable(views.terms, views.estimates(last="1d")._columns, [])
    assert rows.to_arrow().num_rows == len(rows.to_polars()) == len(rows.to_pandas()) == 0
    assert rows.to_arrow().schema == views.estimates(last="1d").to_arrow().schema


def test_keys_and_what_is_decided_and_promised(views):
    assert list(views.keys()) == ["de / /home", "de / /café", "fr / /home", 'fr / "\\"/odd, / one\\""']
    assert list(views.keys("CAFÉ")) == ["de / /café"]
    assert views.completeness()["through"] == "2026-03-30T22:00:00Z"
    assert views.statement().startswith("Pipeline views. ")


def test_a_wrong_question_is_an_error_of_the_package(app, views):
    with pytest.raises(QuestionError, match="not made of whole weeks"):
        views.estimates(last="7d", by="week")
    with pytest.raises(QuestionError, match="nothing to compare with"):
        views.compare(Asked(last="1d"), Asked())
    with pytest.raises(NothingFound):
        views.estimates(["fr,/none"], last="1d")
    with pytest.raises(UsageError, match="is of pipeline views, not of clicks"):
        open_answers(app, "clicks")
    with pytest.raises(ConfigError, match="an output file: give the configuration"):
        open_answers(load_config(app).output_path)


@pytest.mark.parametrize("library", ["pyarrow", "polars", "pandas"])
def test_a_library_that_is_not_there_is_named(views, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    rows = views.estimates(last="1d")
    make = {"pyarrow": rows.to_arrow, "polars": rows.to_polars, "pandas": rows.to_pandas}[library]
    with pytest.raises(UsageError, match=f"pip install {library}"):
        make()


# docs/client.md


def documented(table: str) -> dict[str, str]:
    """Column -> type, of the tables of the page; several columns may share a row."""
    rows = re.findall(r"^\| (`[^|]+`) \| (text|texts|time|number|count|flag) \|", table, re.M)
    return {name: kind for names, kind in rows for name in re.findall(r"`(\w+)`", names)}


def test_the_page_has_every_column_and_its_type(views):
    page = PAGE.read_text("utf-8")
    of_rows, of_ranks, of_differences = (documented(part) for part in re.split("`top` has these|`compare` has", page))
    found = tables(views)
    fields = {"key_site": "text", "key_page": "text"}
    of_key = of_rows.pop("key_FIELD")
    assert found["estimates"].columns == of_rows | fields
    assert of_key == "text"
    assert found["top"].columns == of_rows | fields | of_ranks
    common = {name: kind for name, kind in (of_rows | fields).items() if name in ("pipeline", "keys") or "key" in name}
    sides = {
        f"{side}_{name}": kind for side in ("first", "second") for name, kind in of_rows.items() if name not in common
    }
    assert found["compare"].columns == common | sides | of_differences
    (last,) = re.findall(r"^`pair` has `part` \(text\), and (.*)$", page, re.M)
    assert list(found["pair"].columns) == ["part", *re.findall(r"`(\w+)`", last)]


def test_the_program_of_the_page_runs(tmp_path, monkeypatch, capsys):
    visits = (
        (1_780_272_000_000 + day * 86_400_000 + n * 60_000, page, f"{day % 2} {n}")
        for day in range(3)
        for page, users in (("/home", 300), ("/news", 100), ("/shop", 30))
        for n in range(users)
    )
    write_events(tmp_path / "in.jsonl", ({"page": page, "user": user, "at": at} for at, page, user in visits))
    ends = {"start": "2026-06-01T00:00:00Z", "end": "end = 2026-06-04T00:00:00Z"}
    run_here(write_config(tmp_path, size="1h", epsilon=8, buckets=256, **ends))
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    exec(compile(code, "client.md", "exec"), {})  # noqa: S102 -- the page's own code
    shown = capsys.readouterr().out
    assert re.search(r"visitors of either page$", shown, re.M)
    assert len(re.findall(r"^\['/\w+'\] .* rank \d to \d$", shown, re.M)) == 3
    assert "difference_low" in shown
    assert "only_second" in shown
