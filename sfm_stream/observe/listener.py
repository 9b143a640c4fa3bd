"""Listeners for metrics and health: two trust domains, each with an address of its own. For GET and HEAD alone."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from socketserver import TCPServer, ThreadingMixIn
from threading import Thread
from typing import Any, TypeAlias
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import CollectorRegistry, make_wsgi_app

from sfm_stream.errors import ConfigError

Check: TypeAlias = Callable[[], list[str]]
"""What is wrong, a line each; nothing: all is well."""
_PATIENCE_S = 10.0
_LOOK_S = 0.1


class Listener:
    """Serves pages in daemon threads until it is closed.

    setting: where the address was written. address: "host:port", "[IPv6]:port"; port 0 takes any that is free. Raises
    ConfigError where it cannot listen there.
    """

    def __init__(self, setting: str, address: str, pages: Mapping[str, WSGIApplication]) -> None:
        host, _, port = address.rpartition(":")
        try:
            self._server = _server(host.strip("[]"), int(port))
        except OSError as error:
            problem = error.strerror or str(error)
            raise ConfigError(f"{setting}: cannot listen at {address}: {problem}. {_REMEDY}") from None
        self._server.set_app(_site(pages))
        self.host, self.port = self._server.server_name, self._server.server_port
        self._thread = Thread(target=self._server.serve_forever, args=(_LOOK_S,), name=setting, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening; answers on their way are not waited for."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


_REMEDY = "Each worker on a host needs an address of its own"


def operator_listener(address: str, registry: CollectorRegistry, live: Check, ready: Check) -> Listener:
    """/metrics, /live and /ready of the operator; what is wrong is said."""
    pages = {"/metrics": make_wsgi_app(registry), "/live": _health(live), "/ready": _health(ready)}
    return Listener("metrics.operator", address, pages)


def public_listener(address: str, registry: CollectorRegistry, live: Check) -> Listener:
    """/metrics and /live for everybody; what is wrong is not said."""
    pages = {"/metrics": make_wsgi_app(registry), "/live": _health(lambda: ["not live"] if live() else [])}
    return Listener("metrics.public", address, pages)


def _health(check: Check) -> WSGIApplication:
    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        problems = check()
        return _text(start, HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK, *problems or ["ok"])

    return answer


def _site(pages: Mapping[str, WSGIApplication]) -> WSGIApplication:
    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        page = pages.get(environ["PATH_INFO"])
        if page is None:
            return _text(start, HTTPStatus.NOT_FOUND, "not found")
        method = environ["REQUEST_METHOD"]
        if method not in ("GET", "HEAD"):
            return _text(start, HTTPStatus.METHOD_NOT_ALLOWED, "GET and HEAD only", allow="GET, HEAD")
        return page(environ, start) if method == "GET" else _head(page, environ, start)

    return answer


def _head(page: WSGIApplication, environ: WSGIEnvironment, start: StartResponse) -> list[bytes]:
    """The status and the headers that GET would be answered with, its length too, and no body."""
    said: list[tuple[str, list[tuple[str, str]]]] = []

    def note(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:
        said.append((status, headers))
        return lambda data: None

    body = b"".join(page({**environ, "REQUEST_METHOD": "GET"}, note))
    status, headers = said[-1]
    start(status, [*headers, ("Content-Length", str(len(body)))])
    return []


def _text(start: StartResponse, status: HTTPStatus, *lines: str, allow: str | None = None) -> list[bytes]:
    headers = [("Content-Type", "text/plain; charset=utf-8"), *([("Allow", allow)] if allow else [])]
    start(f"{status.value} {status.phrase}", headers)
    return ["".join(f"{line}\n" for line in lines).encode()]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        """Without asking for the name of the host, which may take as long as a name server that is away."""
        TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A peer that has gone or says nothing is no news."""


class _Handler(WSGIRequestHandler):
    timeout = _PATIENCE_S

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""


def _server(host: str, port: int) -> _Server:
    """Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, place = found[0]
    kind = type("_ServerOfFamily", (_Server,), {"address_family": family})
    server: _Server = kind(place[:2], _Handler)
    return server
