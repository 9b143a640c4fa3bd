"""The listener: peers that send or read too slowly, addresses that are taken, and a stop while an answer is sent."""

from __future__ import annotations

import socket
import threading
from contextlib import closing

import pytest
from fastapi import FastAPI
from fastapi.responses import Response
from support.patience import PATIENCE_S

from sfm_stream.errors import ConfigError
from sfm_stream.serve import http_server
from sfm_stream.serve.http_server import HttpServer

LARGE = 32 << 20


@pytest.fixture
def app():
    app = FastAPI(openapi_url=None)
    app.state.asked, app.state.go_on = threading.Event(), threading.Event()

    @app.get("/")
    async def small():
        return Response("small")

    @app.get("/large")
    async def large():
        return Response(bytes(LARGE))

    @app.get("/waits")
    def waits():
        app.state.asked.set()
        app.state.go_on.wait(PATIENCE_S)
        return Response("waited")

    return app


@pytest.fixture
def server(app):
    with closing(HttpServer(app, "serve.listen", "127.0.0.1:0")) as server:
        yield server


def connected(server):
    return closing(socket.create_connection((server.host, server.port), timeout=PATIENCE_S))


def read_to_end(peer):
    """What the server sends until it ends the connection, in whichever way."""
    received = b""
    try:
        while part := peer.recv(1 << 20):
            received += part
    except ConnectionResetError:
        return received
    return received


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: "])
def test_a_peer_that_does_not_send_its_request_is_left(server, monkeypatch, sent):
    monkeypatch.setattr(http_server, "_LOOK_S", 0.05)
    monkeypatch.setattr(http_server, "REQUEST_S", 0.2)
    with connected(server) as peer:
        peer.sendall(sent)
        assert read_to_end(peer) == b""


def test_a_peer_that_does_not_read_its_answer_is_left(server, monkeypatch):
    monkeypatch.setattr(http_server, "_LOOK_S", 0.05)
    monkeypatch.setattr(http_server, "ANSWER_S", 0.2)
    with connected(server) as peer:
        peer.sendall(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
        with connected(server) as other:
            # Others are answered in the meantime, and longer than the slow one may take.
            for _ in range(3):
                other.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
                received = b""
                while b"small" not in received:
                    received += other.recv(1 << 16)
        threading.Event().wait(1.0)
        assert len(read_to_end(peer)) < LARGE


def test_a_head_has_a_largest_size(server):
    with connected(server) as peer:
        peer.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            peer.sendall(b"".join(b"x-%d: %s\r\n" % (number, b"y" * 4096) for number in range(10_000)))


def test_an_answer_that_is_being_made_is_sent_before_it_stops(app, server):
    with connected(server) as peer:
        peer.sendall(b"GET /waits HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert app.state.asked.wait(PATIENCE_S)
        stopping = threading.Thread(target=server.close)
        stopping.start()
        app.state.go_on.set()
        stopping.join(PATIENCE_S)
        assert not server.runs
        assert read_to_end(peer).endswith(b"waited")


@pytest.mark.parametrize("address", ["{host}:{port}", "256.1.1.1:80", "nowhere.invalid:80"])
def test_an_address_where_it_cannot_listen_is_named(app, server, address):
    address = address.format(host=server.host, port=server.port)
    with pytest.raises(ConfigError, match=f"serve.listen: cannot listen at {address}: "):
        HttpServer(app, "serve.listen", address)


def test_answers_are_not_held_back_for_more(server):
    """Else each waits for the ACK of its head, which a peer may hold back for 40 ms."""
    assert server._socket.proto == socket.IPPROTO_TCP  # what asyncio looks at before it sets TCP_NODELAY
