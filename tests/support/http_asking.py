"""An application behind the real server, and a client that asks it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from fastapi import FastAPI
from support.patience import PATIENCE_S

from sfm_stream.serve.http_server import HttpServer


@contextmanager
def asking(app: FastAPI) -> Iterator[httpx.Client]:
    """A client of the application, which is served at a free port of loopback."""
    server = HttpServer(app, "serve.listen", "127.0.0.1:0")
    try:
        with httpx.Client(base_url=f"http://{server.host}:{server.port}", timeout=PATIENCE_S) as client:
            yield client
    finally:
        server.close()
