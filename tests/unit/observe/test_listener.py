"""Listeners over real sockets."""

import gzip
import http.client
import socket
import threading

import pytest
from prometheus_client import CollectorRegistry, Gauge
from support.patience import PATIENCE_S

from sfm_stream.errors import ConfigError
from sfm_stream.observe.listener import operator_listener, public_listener


@pytest.fixture
def registry():
    registry = CollectorRegistry()
    Gauge("sfm_test", "A gauge.", registry=registry).set(3)
    return registry


@pytest.fixture
def problems():
    return {"live": [], "ready": []}


@pytest.fixture
def operator(registry, problems):
    listener = operator_listener("127.0.0.1:0", registry, lambda: problems["live"], lambda: problems["ready"])
    yield listener
    listener.close()


@pytest.fixture
def public(registry, problems):
    listener = public_listener("127.0.0.1:0", registry, lambda: problems["live"])
    yield listener
    listener.close()


def ask(listener, path, method="GET", headers=()):
    connection = http.client.HTTPConnection(listener.host, listener.port, timeout=PATIENCE_S)
    connection.request(method, path, headers=dict(headers))
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body, dict(answer.getheaders())


@pytest.mark.parametrize("name", ["operator", "public"])
def test_metrics_are_served(name, request):
    listener = request.getfixturevalue(name)
    status, body, headers = ask(listener, "/metrics")
    assert (status, headers["Content-Type"].split(";")[0]) == (200, "text/plain")
    assert b"\nsfm_test 3.0\n" in body
    status, body, headers = ask(listener, "/metrics?name[]=other", headers={"Accept-Encoding": "gzip"})
    assert (status, gzip.decompress(body)) == (200, b"")


def test_health_flips_and_the_operator_is_told_why(operator, public, problems):
    assert ask(operator, "/live")[:2] == ask(operator, "/ready")[:2] == ask(public, "/live")[:2] == (200, b"ok\n")
    problems["ready"] = ["ingest: not in its consumer group"]
    assert ask(operator, "/ready")[:2] == (503, b"ingest: not in its consumer group\n")
    assert ask(operator, "/live")[0] == 200
    problems["live"] = ["ingest: no turn for 400 s"]
    assert ask(operator, "/live")[:2] == (503, b"ingest: no turn for 400 s\n")
    assert ask(public, "/live")[:2] == (503, b"not live\n")
    problems["ready"] = problems["live"] = []
    assert ask(operator, "/ready")[0] == ask(public, "/live")[0] == 200


@pytest.mark.parametrize("path", ["/", "/ready", "/metrics/", "/metrics/x", "/favicon.ico", "/live?x"])
def test_the_public_has_two_pages(public, path):
    assert ask(public, path)[0] == (200 if path == "/live?x" else 404)


@pytest.mark.parametrize("path", ["/", "/health", "/metrics/../ready"])
def test_unknown_pages_are_not_found(operator, path):
    assert ask(operator, path)[0] == 404


@pytest.mark.parametrize("path", ["/metrics", "/live", "/ready"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "NONSENSE"])
def test_only_get_and_head_are_answered(operator, path, method):
    status, _, headers = ask(operator, path, method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/metrics", "/live", "/ready", "/nowhere"])
def test_head_is_get_without_the_body(operator, problems, path):
    for problems["ready"] in ([], ["ingest: not in its consumer group"]):
        status, body, headers = ask(operator, path)
        silent = ask(operator, path, "HEAD")
        assert silent[:2] == (status, b"")
        assert silent[2]["Content-Type"] == headers["Content-Type"]
        if path != "/nowhere":
            assert silent[2]["Content-Length"] == str(len(body))


def test_a_port_in_use_names_the_setting(operator, registry):
    taken = f"127.0.0.1:{operator.port}"
    with pytest.raises(ConfigError, match=f"metrics.public: cannot listen at {taken}: Address already in use"):
        public_listener(taken, registry, list)
    with pytest.raises(ConfigError, match=r"metrics\.operator: cannot listen at no-such-host"):
        operator_listener("no-such-host.invalid:1", registry, list, list)


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", ""])
def test_what_is_no_address_is_an_error_of_the_setting(registry, address):
    with pytest.raises(ConfigError, match=r"metrics\.operator: .* is no address such as"):
        operator_listener(address, registry, list, list)


def test_a_closed_listener_is_gone(registry):
    before = threading.active_count()
    listener = public_listener("127.0.0.1:0", registry, list)
    assert ask(listener, "/live")[0] == 200
    listener.close()
    with pytest.raises(ConnectionError):
        ask(listener, "/live")
    assert threading.active_count() <= before + 1
    again = public_listener(f"127.0.0.1:{listener.port}", registry, list)
    again.close()


def test_a_peer_that_breaks_off_or_talks_nonsense_harms_nobody(operator, capfd):
    for said in (b"", b"\x00\xff\r\n\r\n", b"GET /metrics HTTP/1.1\r\n"):
        with socket.create_connection((operator.host, operator.port)) as peer:
            peer.sendall(said)
    waiting = [socket.create_connection((operator.host, operator.port)) for _ in range(20)]
    assert ask(operator, "/live")[0] == 200
    for peer in waiting:
        peer.close()
    assert capfd.readouterr().err == ""


def test_an_address_of_ip_6(registry):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    listener = public_listener("[::1]:0", registry, list)
    assert ask(listener, "/live")[0] == 200
    listener.close()


def test_a_page_that_fails_while_standard_error_does_too_ends_nothing(registry, problems, monkeypatch):
    class Full:
        def write(self, text):
            raise OSError(28, "No space left on device")

        flush = write

    def failing():
        raise RuntimeError("a check that fails")

    listener = operator_listener("127.0.0.1:0", registry, failing, lambda: problems["ready"])
    try:
        for stream in (Full(), None):
            monkeypatch.setattr("sys.stderr", stream)
            with pytest.raises((http.client.HTTPException, OSError)):
                ask(listener, "/live")
            assert ask(listener, "/ready")[0] == 200
            assert ask(listener, "/metrics")[0] == 200
    finally:
        listener.close()
