"""A pipeline on files with keys that are hard to write, as it is served; and a client of its server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from support.embedded_runs import HOUR_MS, START_MS, run_here, write_config, write_events
from support.patience import PATIENCE_S

from sfm_stream.config.config import load_config
from sfm_stream.serve.server import serving

HARD_KEYS = (
    "/home",
    "=cmd|' /C calc'!A0",
    '"quoted" / x',
    "\u202eevil\x1b[0m",
    "0x00ff",
    "42",
    "<script>alert(1)</script>",
    ", ,",
    "日本語 ",
    "(all)",
    "",
    "a&key=b#c%00",
)
HOURS = 48


def make_served(folder: Path, **settings: object) -> Path:
    """A configuration that has run: each key has users in each of two days' hours, the later ones more."""
    events = [
        {"page": key, "user": f"{number} {user} {hour % 7}", "at": START_MS + hour * HOUR_MS + user * 1000}
        for hour in range(HOURS)
        for number, key in enumerate(HARD_KEYS)
        for user in range(20 + 10 * number)
    ]
    write_events(folder / "in.jsonl", events)
    usual: dict[str, object] = {"size": "1h", "epsilon": 8, "buckets": 256}
    config = write_config(folder, "app.toml", **(usual | settings))
    run_here(config)
    return config


@contextmanager
def asked_server(*configs: Path) -> Iterator[httpx.Client]:
    """A client of a server of these configurations, at a free port of loopback."""
    with (
        serving([load_config(config) for config in configs], "127.0.0.1:0") as server,
        httpx.Client(base_url=f"http://{server.host}:{server.port}", timeout=PATIENCE_S) as client,
    ):
        yield client


def problem(answer: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    """The problem document of an answer, which is of this kind."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    found: dict[str, Any] = answer.json()
    assert (found["status"], found["type"]) == (status, f"/v1/docs#{kind}")
    return found
