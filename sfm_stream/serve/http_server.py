"""The HTTP server: one thread with an event loop, bounded in connections, and in how long a peer may take.

It is not for the open internet: TLS, passwords and many slow peers are the work of a proxy (docs/serve.md).
"""

from __future__ import annotations

import logging
import socket
from threading import Thread
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from sfm_stream.errors import ConfigError

REQUEST_S = 10.0
"""How long a peer may take to send its request."""
ANSWER_S = 120.0
"""How long an answer may take, with what its peer takes to read it."""
_LOOK_S = 1.0
"""How often each connection is looked at."""
_LEAVE_S = 5
"""How long answers that are being sent may take once the server stops."""
_MAX_CONNECTIONS = 256
_MAX_HEAD_BYTES = 64 << 10
"""Of a request: its first line and its headers."""


class HttpServer:
    """Serves an application until it is closed. host, port: where it listens.

    address: "host:port" or "[IPv6]:port"; port 0 takes any that is free. Raises ConfigError where it cannot listen.
    """

    def __init__(self, app: FastAPI, setting: str, address: str) -> None:
        self._socket = _bound(setting, address)
        self.host, self.port = self._socket.getsockname()[:2]
        settings = uvicorn.Config(
            app,
            http=_HurriedPeers,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level=logging.ERROR,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MAX_CONNECTIONS,
            h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
            timeout_graceful_shutdown=_LEAVE_S,
        )
        self._server = uvicorn.Server(settings)
        self._thread = Thread(target=self._server.run, args=([self._socket],), name=setting, daemon=True)
        self._thread.start()

    @property
    def runs(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        """Stop listening. Answers that are being sent are waited for, for a few seconds."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


class _HurriedPeers(H11Protocol):
    """A connection that is closed where its peer sends its request too slowly, or reads the answer too slowly."""

    _at_work_since = _waiting_since = 0.0
    """By the clock of the loop: when the cycle was first seen, when a request began to be waited for."""
    _seen: object = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._waiting_since = self.loop.time()
        self.loop.call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        if self.transport.is_closing() and not unsent:
            return
        now = self.loop.time()
        # An answer that is made is written at once, and waits in memory for a peer that does not read it.
        if unsent or (self.cycle is not None and not self.cycle.response_complete):
            if self._seen is not self.cycle:
                self._seen, self._at_work_since = self.cycle, now
            late = now - self._at_work_since > ANSWER_S
        else:
            if self._seen is not None:
                self._seen, self._waiting_since = None, now
            late = now - self._waiting_since > REQUEST_S
        if late:
            self.transport.abort()
        else:
            self.loop.call_later(_LOOK_S, self._look)


def _bound(setting: str, address: str) -> socket.socket:
    """A socket at the first address of this host, IPv4 or IPv6. Raises ConfigError."""
    host, _, port = address.rpartition(":")
    try:
        family, kind, protocol, _, at = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # With its protocol: else the loop does not know that it is TCP, and answers wait for an ACK of their head.
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(at)
            # Now, and not once its thread runs: whoever has made a server may ask it.
            bound.listen(_MAX_CONNECTIONS)
        except BaseException:
            bound.close()
            raise
    except OSError as error:
        problem = error.strerror or str(error)
        raise ConfigError(
            f"{setting}: cannot listen at {address}: {problem}. Each server on a host needs an address of its own"
        ) from None
    return bound
