"""The JSON API over a pipeline on files that really ran, against what `estimate` says of the same file."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import re
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from pydantic import TypeAdapter
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance
from support.embedded_runs import HOUR_MS, START_MS, asked, here, run_here
from support.patience import PATIENCE_S
from support.served_files import HARD_KEYS, asked_server, make_served, problem

from sfm_stream.config.config import load_config
from sfm_stream.serve import models, turns
from sfm_stream.transport.files.log_reader import LogReader
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Record, Step
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.codec import decode, encode

VIEWS = "/v1/pipelines/views"
DOCS = Path(__file__).resolve().parents[2] / "docs/serve.md"
DAY = {"from": "2026-01-01", "to": "2026-01-02"}


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    return make_served(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def client(app):
    with asked_server(app) as client:
        yield client


@pytest.mark.parametrize(
    "question",
    [
        {"by": "day"},
        {"by": "hour", "key": "/home"},
        {"by": "window", "key": "/home", "from": "2026-01-01T05:00Z", "to": "2026-01-01T07:00Z"},
        {"by": "week"},
        {"last": "1d"},
        {"last": "12h", "by": "hour"},
        {**DAY, "key": ["/home", '"42"']},
        {**DAY, "key": ["/home", '"42"'], "joined": "true"},
    ],
)
def test_answers_are_those_of_the_command_line(app, client, question):
    options = []
    for name, value in question.items():
        for each in value if isinstance(value, list) else [value]:
            options += [f"--{name}"] if name == "joined" else [f"--{name}", each]
    rows = client.get(f"{VIEWS}/estimates", params=question).json()["rows"]
    assert rows == asked(app, *options)
    TypeAdapter(list[models.RowJson]).validate_python(rows)


@pytest.mark.parametrize("key", HARD_KEYS)
def test_a_key_is_asked_for_as_it_is_listed(client, key):
    listed = client.get(f"{VIEWS}/keys").json()
    (text,) = (each["text"] for each in listed["keys"] if each["key"] == [key])
    for asked_as in (text, json.dumps([key])):
        (row,) = client.get(f"{VIEWS}/estimates", params={**DAY, "key": asked_as}).json()["rows"]
        assert row["key"] == [key]


def test_keys_come_in_pages_and_can_be_searched(client):
    texts, after = [], {}
    while True:
        page = client.get(f"{VIEWS}/keys", params={"limit": 5, **after}).json()
        models.KeysJson.model_validate(page)
        texts += [each["text"] for each in page["keys"]]
        if not page["more"]:
            break
        after = {"after": texts[-1]}
    assert len(texts) == len(set(texts)) == len(HARD_KEYS)
    found = client.get(f"{VIEWS}/keys", params={"search": "HOME"}).json()
    assert found == {"keys": [{"key": ["/home"], "text": "/home"}], "more": False}


def test_a_table_is_json_lines_or_csv_with_the_same_values(client):
    params = {"by": "day", "key": ["/home", "=cmd|' /C calc'!A0"]}
    rows = client.get(f"{VIEWS}/estimates", params=params).json()["rows"]
    lines = client.get(f"{VIEWS}/estimates", params={**params, "format": "jsonl"})
    assert lines.headers["content-type"] == "application/jsonl"
    assert [json.loads(line) for line in lines.text.splitlines()] == rows
    table = client.get(f"{VIEWS}/estimates", params={**params, "format": "csv"})
    assert table.headers["content-type"].startswith("text/csv")
    read = list(csv.DictReader(io.StringIO(table.text, newline="")))
    assert [list(row) for row in read] == [list(row) for row in rows]
    assert [json.loads(row["key"]) for row in read] == [row["key"] for row in rows]
    assert [float(row["estimate"]) for row in read] == [row["estimate"] for row in rows]
    # A spreadsheet takes a field that begins so for a formula.
    fields = [field for row in read for field in row.values()]
    assert [field for field in fields if field.startswith(("=", "+", "@", "\t"))] == []


def test_pairs_comparisons_ranks_and_how_far_it_is_have_the_fields_that_are_described(client):
    two = {**DAY, "key": "/home", "other_key": '"42"'}
    pair = client.get(f"{VIEWS}/pair", params=two).json()
    models.PairJson.model_validate(pair)
    assert (pair["first"]["key"], pair["second"]["key"]) == (["/home"], ["42"])
    compared = client.get(
        f"{VIEWS}/compare", params={**DAY, "other_from": "2026-01-02", "other_to": "2026-01-03"}
    ).json()
    models.ComparisonJson.model_validate(compared)
    assert len(compared["rows"]) == len(HARD_KEYS)
    first, second = (client.get(f"{VIEWS}/estimates", params=each).json()["rows"] for each in (DAY, {"last": "1d"}))
    assert [row["first"] for row in compared["rows"]] == first
    assert [row["second"] for row in compared["rows"]] == second
    top = client.get(f"{VIEWS}/top", params={"last": "1d", "limit": 3}).json()
    models.TopJson.model_validate(top)
    estimates = sorted((row["estimate"] for row in second), reverse=True)
    assert [row["estimate"] for row in top["rows"]] == estimates[:3]
    found = client.get(f"{VIEWS}/completeness").json()
    models.CompletenessJson.model_validate(found)
    assert found["through"] == "2026-01-03T00:00:00Z"


def test_the_statement_is_that_of_config_show(app, client):
    said = client.get(f"{VIEWS}/statement").json()
    models.StatementJson.model_validate(said)
    assert said["statement"] + "\n" == here("config", "show", app, "--statement").stdout


def test_several_pipelines_in_one_server(app, client, tmp_path):
    shutil.copytree(app.parent, tmp_path, dirs_exist_ok=True)
    other = tmp_path / "app.toml"
    other.write_text(other.read_text().replace('id = "views"', 'id = "others"'))
    with asked_server(app, other) as both:
        listed = both.get("/v1/pipelines").json()
        models.PipelinesJson.model_validate(listed)
        assert [each["id"] for each in listed["pipelines"]] == ["others", "views"]
        assert both.get(f"{VIEWS}/estimates").json() == client.get(f"{VIEWS}/estimates").json()
        # Of the pipeline of the other id nothing is in the file.
        assert (
            "has published nothing yet" in problem(both.get("/v1/pipelines/others/estimates"), 404, "nothing")["detail"]
        )


def test_an_answer_that_has_not_changed_is_not_sent_again(client):
    first = client.get(f"{VIEWS}/estimates", params=DAY)
    again = client.get(f"{VIEWS}/estimates", params=DAY, headers={"if-none-match": f'"x", {first.headers["etag"]}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    others = [{**DAY, "key": "/home"}, {**DAY, "format": "csv"}, {"by": "hour", **DAY}, {"last": "1d"}]
    tags = {client.get(f"{VIEWS}/estimates", params=params).headers["etag"] for params in others}
    assert len(tags | {first.headers["etag"]}) == len(others) + 1


def test_answers_are_compressed_where_that_is_accepted(client):
    plain = client.get(f"{VIEWS}/estimates", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    with client.stream("GET", f"{VIEWS}/estimates", headers={"accept-encoding": "gzip"}) as packed:
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(b"".join(packed.iter_raw())) == plain.content


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [
        ("*", True),
        ("*;q=0", False),
        ("*, gzip;q=0", False),
        ("gzip; q=0, *", False),
        ("*;q=0, GZIP", True),
        ("br", False),
    ],
)
def test_what_is_said_of_gzip_goes_before_what_is_said_of_everything(client, accepted, is_packed):
    answer = client.get(f"{VIEWS}/estimates", headers={"accept-encoding": accepted})
    assert ("content-encoding" in answer.headers) == is_packed


def test_head_has_the_headers_of_get(client):
    got = client.get(f"{VIEWS}/estimates", params=DAY)
    head = client.head(f"{VIEWS}/estimates", params=DAY)
    same = ("etag", "content-type", "content-length", "content-security-policy")
    assert (head.status_code, head.content) == (200, b"")
    assert [head.headers[name] for name in same] == [got.headers[name] for name in same]


@pytest.mark.parametrize(
    ("query", "kind", "parameter", "said"),
    [
        ("by=decade", "question", "by", "Input should be"),
        ("colour=red", "question", "colour", "Extra inputs are not permitted"),
        ("from=yesterday&to=2026-01-02", "question", "from", "2026-"),
        ("last=9x", "question", "last", "24h, 7d, 4w, 3mo"),
        ("last=7d&from=2026-01-01", "question", None, "last stands for from and to"),
        (
            "from=2026-01-01T05:30Z&to=2026-01-02",
            "question",
            None,
            'Ask for from="2026-01-01 05:00" to="2026-01-02 00:00"',
        ),
        ("from=2000-01-01&to=2026-01-02&by=hour", "too-much", None, "serve.max_span"),
    ],
)
def test_a_question_that_makes_no_sense_is_told_what_to_ask(client, query, kind, parameter, said):
    found = problem(client.get(f"{VIEWS}/estimates?{query}"), 400, kind)
    assert said in found["detail"]
    assert "--" not in found["detail"]
    assert [each["parameter"] for each in found.get("parameters", [])] == ([parameter] if parameter else [])


def test_what_is_not_there_is_told_so(client):
    assert "it has views" in problem(client.get("/v1/pipelines/none/estimates"), 404, "nothing")["detail"]
    problem(client.get("/v1/nowhere"), 404, "unknown")
    nobody = problem(client.get(f"{VIEWS}/estimates", params={"key": "/nobody"}), 404, "nothing")
    assert "nothing is published for this key" in nobody["detail"]
    some = client.get(f"{VIEWS}/estimates", params={**DAY, "key": ["/home", "/nobody"]}).json()
    assert [row["key"] for row in some["rows"]] == [["/home"]]
    assert some["unanswered"][0].startswith("/nobody: nothing is published")
    two = client.get(f"{VIEWS}/compare", params={**DAY, "other_from": "x", "other_to": "2026-01-03"})
    assert problem(two, 400, "question")["parameters"][0]["parameter"] == "other_from"


def test_rows_and_time_of_a_question_are_bounded(app, tmp_path, monkeypatch):
    shutil.copytree(app.parent, tmp_path, dirs_exist_ok=True)
    config = tmp_path / "app.toml"
    config.write_text(config.read_text() + '[serve]\nmax_rows = 20\nmax_time = "1m"\n')
    with asked_server(config) as client:
        assert len(client.get(f"{VIEWS}/estimates", params=DAY).json()["rows"]) == len(HARD_KEYS)
        found = problem(client.get(f"{VIEWS}/estimates", params={"by": "day"}), 400, "too-much")
        assert "24 rows, and 20 are allowed (serve.max_rows)" in found["detail"]
        # A clock by which a minute is over whenever it is looked at. Nothing is read then.
        monkeypatch.setattr(turns, "monotonic_s", itertools.count(0, 61).__next__)
        found = problem(client.get(f"{VIEWS}/estimates", params={"last": "1d"}), 400, "too-much")
        assert "ended after 1m (serve.max_time)" in found["detail"]
        # What is known already takes no time.
        assert client.get(f"{VIEWS}/estimates", params=DAY).status_code == 200


def test_an_answer_is_made_anew_when_more_is_published(tmp_path):
    config = make_served(tmp_path, complete="false", grace="1h")
    with asked_server(config) as client:
        before = client.get(f"{VIEWS}/estimates", params={"by": "day", "key": "/home"})
        assert [row["complete"] for row in before.json()["rows"]] == [True, False]
        with (tmp_path / "in.jsonl").open("a") as events:
            events.write(json.dumps({"page": "/home", "user": "late", "at": START_MS + 72 * HOUR_MS}) + "\n")
        run_here(config)
        after = client.get(
            f"{VIEWS}/estimates",
            params={"by": "day", "key": "/home"},
            headers={"if-none-match": before.headers["etag"]},
        )
        assert after.status_code == 200
        assert after.json()["rows"] == asked(config, "--by", "day", "--key", "/home")
        assert [row["complete"] for row in after.json()["rows"]] == [True, True]


def test_of_all_hours_only_those_that_end_with_a_day_are_read_for_days(app, monkeypatch):
    taken, records = [], LogReader._records

    def counted(reader, where, values, topic, *others):
        found = records(reader, where, values, topic, *others)
        taken.extend(each.timestamp_ms for each in found if topic == ROLLUPS)
        return found

    monkeypatch.setattr(LogReader, "_records", counted)
    with asked_server(app) as client:
        assert len(client.get(f"{VIEWS}/estimates", params={"by": "day", "from": "2026-01-01"}).json()["rows"]) == 24
    # The hour that ends with the day and the day, of each key: so few are not looked up a second time.
    assert set(taken) == {START_MS + 24 * HOUR_MS, START_MS + 48 * HOUR_MS}
    assert len(taken) == 2 * 2 * len(HARD_KEYS)


def test_a_second_payload_of_a_release_is_told_as_an_incident(app, tmp_path):
    shutil.copytree(app.parent, tmp_path, dirs_exist_ok=True)
    config = tmp_path / "app.toml"
    output = str(load_config(config).output_path)
    with closing(LogReader(output)) as reader:
        stored = next(each for each in reader.read(SKETCHES) if each.key)
    release = decode(stored.value)
    flipped = bytes([release.sketch.bits[0] ^ 1]) + release.sketch.bits[1:]
    other = replace(release, sketch=replace(release.sketch, bits=flipped))
    with closing(SqliteLog(output)) as log:
        log.append("x", Step((Record(SKETCHES, 0, stored.key, encode(other), stored.timestamp_ms),), ()))
    with asked_server(config) as client:
        found = problem(client.get(f"{VIEWS}/estimates", params={"last": "48h"}), 500, "incident")
        assert "payload" in found["detail"]
        assert client.get(f"{VIEWS}/keys").status_code == 200


def test_a_file_that_is_not_there_yet_is_answered_later(tmp_path, app):
    config = tmp_path / "app.toml"
    shutil.copy(app, config)
    with asked_server(config) as client:
        found = problem(client.get(f"{VIEWS}/estimates"), 503, "not-now")
        assert "its output file is not there" in found["detail"]
        assert client.get("/ready").status_code == 503
        shutil.copy(app.parent / "in.jsonl", tmp_path)
        run_here(config)
        assert client.get("/ready").status_code == 200
        assert client.get(f"{VIEWS}/estimates").json()["rows"] == asked(config)


@pytest.fixture(scope="module")
def described(client):
    return schemathesis.openapi.from_url(f"{client.base_url}/v1/openapi.json")


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize(
    "path",
    ["", "/{pipeline}"]
    + [f"/{{pipeline}}/{n}" for n in ("keys", "estimates", "top", "pair", "compare", "completeness", "statement")],
)
def test_whatever_is_asked_the_answer_is_as_described(described, path, mode):
    """Status, media type and every field of what comes, for questions that make sense and for others."""
    operation = described[f"/v1/pipelines{path}"]["GET"]
    if mode is GenerationMode.NEGATIVE and not operation.query.items:
        return  # there is nothing that could be wrong

    @given(operation.as_strategy(generation_mode=mode))
    @settings(max_examples=8, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    def asked_anything(case):
        # What makes sense together, such as times of a span, no schema says.
        case.call_and_validate(timeout=PATIENCE_S, excluded_checks=[positive_data_acceptance])

    asked_anything()


def test_every_address_is_fuzzed(described, request):
    tested = {f"/v1/pipelines{mark.args[1][n]}" for mark in _paths() for n in range(len(mark.args[1]))}
    assert {operation.ok().path for operation in described.get_all_operations()} == tested


def _paths():
    marks = test_whatever_is_asked_the_answer_is_as_described.pytestmark
    return [mark for mark in marks if mark.args[0] == "path"]


HOSTILE = [
    "%00",
    "%ff%fe",
    "..%2f..%2fetc%2fpasswd",
    "%7b%7b7*7%7d%7d",
    "[" * 500,
    '["a", ["b"]]',
    "1e999",
    "-9223372036854775809",
    "9" * 5000,
    "\\u0000",
    "0x" + "0" * 4001,
    "' OR 1=1 --",
    "%F0%9F%A4%A1",
    "a / " * 300,
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", ["key", "from", "to", "last", "by", "search", "after", "limit", "other_key"])
def test_hostile_text_in_any_parameter_is_refused_or_answered_but_never_an_error(client, name, text):
    for path in ("estimates", "keys", "top", "compare"):
        answer = client.get(f"{VIEWS}/{path}?{name}={text}")
        assert answer.status_code in (200, 400, 404), (path, answer.text)
        if answer.status_code != 200:
            assert answer.json()["detail"]
            assert "\x1b" not in answer.text


ADDRESSES = re.findall(r"^curl 'http://127.0.0.1:8464(/v1/\S*)'$", DOCS.read_text(), re.MULTILINE)


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_addresses_of_the_documentation_are_answered(client, address):
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    assert len(ADDRESSES) >= 10


def test_a_server_that_is_not_installed_is_named_with_the_remedy(app, monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("sfm_stream.serve", "fastapi"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    done = here("serve", app)
    assert (done.returncode, done.stdout) == (2, "")
    assert "serve needs fastapi" in done.stderr
    assert "pip install 'sfm-stream[serve]'" in done.stderr


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('listen = ""', 'serve.listen: "" is no address'),
        ('listen = "127.0.0.1:99999"', "serve.listen: expected an address"),
        ('hosts = ["a b"]', "serve.hosts"),
        ('cors_origins = ["*"]', "serve.cors_origins"),
        ("max_rows = 0", "serve.max_rows"),
    ],
)
def test_settings_that_cannot_be_are_named(app, tmp_path, settings, said):
    config = tmp_path / "app.toml"
    config.write_text(app.read_text() + f"[serve]\n{settings}\n")
    done = here("serve", config)
    assert (done.returncode, done.stdout) == (3, "")
    assert said in done.stderr


def test_configurations_that_do_not_go_together_are_named(app, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text(app.read_text() + "[serve]\nmax_rows = 7\n")
    done = here("serve", app, other)
    assert done.returncode == 3
    assert "two of the configurations are of views" in done.stderr
    assert "other settings than the first one" in done.stderr


def test_the_command_answers_until_it_is_stopped(app):
    call = [sys.executable, "-m", "sfm_stream.cli", "serve", app, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(call, stderr=subprocess.PIPE, text=True)
    try:
        address = re.search(r"answers at (\S+/)", process.stderr.readline())[1]
        assert httpx.get(f"{address}v1/pipelines", timeout=PATIENCE_S).json()["pipelines"][0]["id"] == "views"
        assert httpx.get(address, timeout=PATIENCE_S, follow_redirects=True).status_code == 200
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
        # What was asked for is in no line of the log.
        assert "answered" in process.stderr.read()
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)
