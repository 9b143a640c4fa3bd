"""The application in front of pipelines that are made up: its guard, its health, what becomes of errors."""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager
from dataclasses import replace

import pytest
from support.embedded_runs import write_config
from support.http_asking import asking
from support.patience import until

from sfm_stream.answers.release_terms import release_terms
from sfm_stream.config.config import load_config
from sfm_stream.config.tables import ServeTable
from sfm_stream.errors import BrokerAway, ConflictError, FormatError, IncompatibleError, StateError, StorageError
from sfm_stream.serve.app import make_app
from sfm_stream.serve.refusals import NotNow
from sfm_stream.serve.served import ServedPipeline, ServedProgress


class Broken:
    """Readers that fail with an error."""

    error: Exception = NotNow("later")

    @contextmanager
    def reader(self):
        raise self.error
        yield


BROKEN = Broken()


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    config = load_config(write_config(tmp_path_factory.mktemp("config")))
    return ServedPipeline(config, release_terms(config), BROKEN.reader, lambda: ServedProgress(True), lambda: "0")


@pytest.fixture(scope="module")
def pipelines(pipeline):
    building = replace(pipeline, progress=lambda: ServedProgress(False, 3, 9, "starting"))
    return {"views": pipeline, "building": building}


@pytest.fixture(scope="module")
def client(pipelines):
    with asking(make_app(pipelines, ServeTable())) as client:
        yield client


def test_it_is_live_at_once_and_ready_once_every_pipeline_can_be_read(client):
    assert client.get("/live").text == "ok\n"
    answer = client.get("/ready")
    assert (answer.status_code, answer.text) == (503, "building: not ready\n")


def test_metrics_say_of_each_pipeline_how_far_it_can_be_read(client):
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    assert [line for line in lines if "request" not in line] == [
        'sfm_served_ready{pipeline="building"} 0.0',
        'sfm_served_ready{pipeline="views"} 1.0',
        'sfm_served_behind_records{pipeline="building"} 6.0',
        'sfm_served_behind_records{pipeline="views"} 0.0',
        'sfm_served_troubled{pipeline="building"} 1.0',
        'sfm_served_troubled{pipeline="views"} 0.0',
    ]


def test_metrics_count_requests_by_route_and_status_and_by_nothing_that_was_asked(pipelines):
    BROKEN.error = NotNow("later")

    def count(route, status):
        """Of the answers that are whole. A scrape is counted after it was made."""
        [*found] = re.findall(rf'_count{{route="{route}",status="{status}"}} (\S+)', client.get("/metrics").text)
        return sum(map(float, found))

    with asking(make_app(pipelines, ServeTable())) as client:
        client.get("/v1/pipelines/views/estimates", params={"key": "/secret"})
        client.get("/v1/pipelines/building/estimates", params={"key": "hidden"})
        client.get("/nowhere/secret")
        client.post("/live")
        until(lambda: count("/v1/pipelines/{pipeline}/estimates", 503) == 2)
        until(lambda: count("none", 404) == 1 == count("none", 405))
        until(lambda: count("/metrics", 200) > 1)
        text = client.get("/metrics").text
        assert not re.search("secret|hidden|_created|python_|process_", text)
        assert 'sfm_served_request_seconds_bucket{le="+Inf",route="none",status="404"} 1.0' in text
        assert len(set(re.findall('route="(.+?)"', text))) == 3
    with asking(make_app(pipelines, ServeTable())) as another:
        assert 'route="none"' not in another.get("/metrics").text, "each application has figures of its own"


def test_how_far_a_copy_is_can_be_asked_while_it_is_made(client):
    state = client.get("/v1/pipelines/building").json()
    assert (state["ready"], state["problem"], state["copied"]) == (False, "starting", {"done": 3, "wanted": 9})


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (NotNow("being copied, 3 of 9"), 503, "not-now"),
        (ConflictError("two payloads of a release"), 500, "incident"),
        (IncompatibleError("epochs differ in shape"), 409, "incompatible"),
        (StateError("the record is damaged"), 500, "damaged"),
        (FormatError("key", "is none", "topic sketches, offset 3"), 500, "damaged"),
        (StorageError("no room"), 503, "fault"),
        (BrokerAway("a broker is away"), 503, "fault"),
    ],
)
def test_an_error_is_a_problem_document_with_its_text(client, error, status, kind):
    BROKEN.error = error
    answer = client.get("/v1/pipelines/views/estimates")
    found = answer.json()
    assert (answer.status_code, found["type"], found["detail"]) == (status, f"/v1/docs#{kind}", str(error))
    assert answer.headers["content-type"] == "application/problem+json"
    assert ("retry-after" in answer.headers) == (status == 503)


def test_an_unexpected_error_is_told_without_its_message(client, caplog):
    BROKEN.error = RuntimeError("the key /secret")
    with caplog.at_level(logging.INFO):
        answer = client.get("/v1/pipelines/views/estimates")
    assert (answer.status_code, answer.json()["type"]) == (500, "/v1/docs#unexpected")
    assert "secret" not in answer.text
    assert "x-content-type-options" in answer.headers
    assert "an answer failed" in caplog.messages


def test_no_key_and_no_query_is_logged(client, caplog):
    BROKEN.error = NotNow("later")
    with caplog.at_level(logging.DEBUG):
        client.get("/v1/pipelines/views/top", params={"key": "/secret", "search": "hidden"})
        client.get("/nowhere/secret")

        def lines():
            return [vars(record) for record in caplog.records if record.name.startswith("sfm_stream")]

        # It is logged once it is sent; that of a test before may come now too.
        until(lambda: {"/v1/pipelines/{pipeline}/top", "none"} <= {line.get("route") for line in lines()})
    assert "secret" not in repr(lines())
    assert "hidden" not in repr(lines())


@pytest.mark.parametrize(
    "path",
    [
        *("/live", "/v1/pipelines", "/v1/docs", "/v1/docs.css", "/nowhere", "/v1/openapi.json", "/metrics"),
        *("/", "/p/no", "/static/x"),
    ],
)
def test_every_answer_keeps_a_browser_from_doing_more_with_it(client, path):
    headers = client.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] in ("no-cache", "no-store")
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_a_static_file_is_kept_under_its_own_version_only(client):
    links = re.findall(r'href="(/static/[^"?]+)\?v=([0-9a-f]+)"', client.get("/").text)
    assert links
    for address, version in links:
        kept = [client.get(address, params={"v": v}).headers["cache-control"] for v in (version, "older", "")]
        assert ["immutable" in each for each in kept] == [True, False, False]


def test_an_address_with_a_slash_behind_it_leads_nowhere(client):
    """Whether a browser came by TLS is known to a proxy alone."""
    for path in ("/v1/pipelines/", "/p/views/", "/v1/docs/", "//evil.example/"):
        answer = client.get(str(client.base_url) + path)
        assert (answer.status_code, answer.headers.get("location")) == (404, None)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "BREW"])
def test_nothing_but_reading_is_allowed(client, method):
    answer = client.request(method, "/v1/pipelines")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert answer.json()["type"] == "/v1/docs#method"


def test_a_query_has_a_longest_length(client):
    answer = client.get("/v1/pipelines/views/estimates", params={"key": ["k" * 1000] * 40})
    assert (answer.status_code, answer.json()["type"]) == (414, "/v1/docs#too-long")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8464", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:8464", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("[::2]", 421),
        ("[::1", 421),
        ("[::1]x", 421),
        ("localhost:1@evil.example", 421),
        ("localhost:1/v1/pipelines?", 421),
        ("", 421),
    ],
)
def test_on_loopback_no_other_name_is_answered(client, host, status):
    assert client.get("/live", headers={"host": host}).status_code == status


@pytest.mark.parametrize(
    ("listen", "hosts", "answered", "refused"),
    [
        ("127.0.0.1:1", ("counts.example",), "counts.example:443", "other.example"),
        ("0.0.0.0:1", ("counts.example",), "counts.example", "other.example"),
        ("0.0.0.0:1", (), "any.example", "any.example/path"),
        ("0.0.0.0:1", ("counts.example",), "10.1.2.3:8464", "10.1.2.3.other.example"),
        ("[::]:1", ("counts.example",), "[fd00::7]:8464", "[other.example]"),
        ("127.0.0.1:1", ("counts.example",), "counts.example", "10.1.2.3"),
        ("[::1]:1", (), "[::1]:1", "any.example"),
    ],
)
def test_further_names_are_set(pipelines, listen, hosts, answered, refused):
    with asking(make_app(pipelines, ServeTable(listen=listen, hosts=hosts))) as client:
        assert client.get("/live", headers={"host": answered}).status_code == 200
        if refused:
            assert client.get("/live", headers={"host": refused}).status_code == 421


def test_other_origins_read_the_api_where_that_is_set_and_nothing_else(pipelines):
    with asking(make_app(pipelines, ServeTable(cors_origins=("https://good.example",)))) as client:

        def allowed(path, origin, method="GET"):
            asked = {"origin": origin, "access-control-request-method": "GET"}
            return client.request(method, path, headers=asked).headers.get("access-control-allow-origin")

        assert allowed("/v1/pipelines", "https://good.example") == "https://good.example"
        assert allowed("/v1/pipelines", "https://good.example", "OPTIONS") == "https://good.example"
        assert allowed("/v1/pipelines", "https://evil.example") is None
        assert allowed("/live", "https://good.example") is None


def test_every_page_of_the_description_asks_nothing_elsewhere(client):
    page = client.get("/v1/docs").text
    assert "//" not in page.replace("<!doctype", "")
    assert "<script" not in page
    assert "style=" not in page
    document = client.get("/v1/openapi.json").json()
    for path in document["paths"]:
        assert path in page
    assert document["paths"]["/v1/pipelines/{pipeline}/keys"]["get"]["parameters"][0]["schema"]["enum"] == [
        "building",
        "views",
    ]
