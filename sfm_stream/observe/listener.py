"""HTTP listeners for metrics and health. Each of the two trust domains has an address of its own.

They answer GET and HEAD, and refuse every other method.
"""

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

HealthCheck: TypeAlias = Callable[[], list[str]]
"""What is wrong, one line for each problem. Empty where all is well."""
_REQUEST_S = 10.0
"""How long a peer may take to send its request."""
_STOP_LOOK_S = 0.1
"""How often the server looks whether to stop."""
_LAST_PORT = 65_535
_REMEDY = "Each worker on a host needs an address of its own"


class Listener:
    """Serves pages in daemon threads until it is closed. host, port: where it listens.

    setting: the setting that holds the address. address: "host:port" or "[IPv6]:port"; port 0 takes any that is free.
    Raises ConfigError where it cannot listen there.
    """

    def __init__(self, setting: str, address: str, pages: Mapping[str, WSGIApplication]) -> None:
        host, _, port = address.rpartition(":")
        if not (port.isdecimal() and int(port) <= _LAST_PORT):
            raise ConfigError(f'{setting}: {address!r} is no address such as "127.0.0.1:9464"')
        try:
            self._server = _server(host.strip("[]"), int(port))
        except (OSError, UnicodeError) as error:  # the latter for a host that cannot be a name
            problem = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise ConfigError(f"{setting}: cannot listen at {address}: {problem}. {_REMEDY}") from None
        self._server.set_app(_site(pages))
        self.host, self.port = self._server.server_name, self._server.server_port
        self._thread = Thread(target=self._server.serve_forever, args=(_STOP_LOOK_S,), name=setting, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening. Answers that are being sent are not waited for."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def operator_listener(address: str, registry: CollectorRegistry, live: HealthCheck, ready: HealthCheck) -> Listener:
    """/metrics, /live and /ready for the operator. The answer says what is wrong."""
    pages = {"/metrics": make_wsgi_app(registry), "/live": _health(live), "/ready": _health(ready)}
    return Listener("metrics.operator", address, pages)


def public_listener(address: str, registry: CollectorRegistry, live: HealthCheck) -> Listener:
    """/metrics and /live for everybody. The answer does not say what is wrong."""
    pages = {"/metrics": make_wsgi_app(registry), "/live": _health(lambda: ["not live"] if live() else [])}
    return Listener("metrics.public", address, pages)


def _health(check: HealthCheck) -> WSGIApplication:
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
    """Answer HEAD: the status, the headers and the length that GET would have, without the body."""
    heads: list[tuple[str, list[tuple[str, str]]]] = []

    def note(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:
        heads.append((status, headers))
        return lambda data: None

    body = b"".join(page({**environ, "REQUEST_METHOD": "GET"}, note))
    status, headers = heads[-1]
    start(status, [*headers, ("Content-Length", str(len(body)))])
    return []


def _text(start: StartResponse, status: HTTPStatus, *lines: str, allow: str | None = None) -> list[bytes]:
    headers = [("Content-Type", "text/plain; charset=utf-8"), *([("Allow", allow)] if allow else [])]
    start(f"{status.value} {status.phrase}", headers)
    return ["".join(f"{line}\n" for line in lines).encode()]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        """Bind without a look-up of the host's name, which hangs where a name server does not answer."""
        TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: that a peer has gone or sends nothing is not worth a line."""


class _Handler(WSGIRequestHandler):
    timeout = _REQUEST_S

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: requests are not logged."""


def _server(host: str, port: int) -> _Server:
    """A server at the first address of this host, IPv4 or IPv6. Raises OSError."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = addresses[0]
    of_family = type("_ServerOfFamily", (_Server,), {"address_family": family})
    server: _Server = of_family(address[:2], _Handler)
    return server
