"""Small pipelines over files, for tests: write a configuration, run it, read what it published."""

from __future__ import annotations

import atexit
import io
import json
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.forks import Forks
from support.patience import PATIENCE_S
from support.summed_rollups import summed

from sfm_stream.cli.main import main
from sfm_stream.composition.files import file_workers
from sfm_stream.composition.run_to_end import RunReport, run_to_end
from sfm_stream.composition.stop_signal import Stop
from sfm_stream.config.config import load_config
from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.transport.files.log_reader import LogReader
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord, decode

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
START_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""

CONFIG = """
[pipeline]
id = "{id}"
epoch = {epoch}
[input]
path = "{input}"
complete = {complete}
{order}
[event]
key = {key}
item = "user"
time = "at"
time_unit = "ms"
latest = 2026-12-31T00:00:00Z
[window]
size = "{size}"
grace = "{grace}"
start = {start}
{end}
[sketch]
buckets = {buckets}
levels = {levels}
[privacy]
epsilon = {epsilon}
keys = "{keys}"
{privacy}
max_epsilon_per_item_day = 10000
[rollup]
zone = "{zone}"
[output]
path = "{output}"
[limits]
max_transaction_bytes = {max_transaction_bytes}
{limits}
"""

DEFAULTS: dict[str, object] = {
    "id": "views",
    "epoch": 1,
    "input": "in.jsonl",
    "complete": "true",
    "order": "",
    "key": '"page"',
    "size": "15m",
    "grace": "5m",
    "start": "2026-01-01T00:00:00Z",
    "end": "",
    "buckets": 64,
    "levels": 16,
    "epsilon": 4,
    "keys": "presence_is_public",
    "privacy": "",
    "zone": "UTC",
    "output": "out.sqlite",
    "max_transaction_bytes": 8 << 20,
    "limits": "",
}

IN_TIME = {"order": 'order = "time"'}
"""Settings of a complete input that is read in order of time all the same."""


class NoFlips:
    """A tape of largest digits: no coin ever comes up, so a release shows the raw cells. For tests only."""

    def digits(self, count: int) -> NDArray[np.uint8]:
        return np.full(count, 255, np.uint8)


def write_config(folder: Path, name: str = "app.toml", **settings: object) -> Path:
    """A configuration file in the folder; settings override DEFAULTS."""
    path = folder / name
    path.write_text(CONFIG.format(**(DEFAULTS | settings)))
    return path


def write_events(path: Path, events: Iterable[dict[str, object]]) -> None:
    path.write_bytes(b"".join(json.dumps(event).encode() + b"\n" for event in events))


def run_here(config: Path, coins: Coins = SYSTEM_COINS) -> RunReport:
    """Run a configuration to the end of its input, in this process."""
    loaded = load_config(config)
    with file_workers(loaded, coins) as work:
        return run_to_end(work, loaded.rollup.deadline, Stop())


@cache
def _commands() -> Forks:
    made = Forks(Path(__file__).with_name("command_process.py"))
    atexit.register(made.close)
    return made


def command(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the `sfm-stream` command in a process of its own; with options of subprocess.run one that loads all anew."""
    if not options:
        return _commands().run(*arguments)
    call = [sys.executable, "-m", "sfm_stream.cli", *map(str, arguments)]
    done: subprocess.CompletedProcess[str]
    done = subprocess.run(call, capture_output=True, text=True, timeout=PATIENCE_S, **options)
    return done


def here(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The whole command in this process, which has loaded it: what it would print, and the code it would end with."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["sfm-stream", *map(str, arguments)])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as ended:
            main()
        out.flush()
        err.flush()
    assert isinstance(ended.value.code, int)
    said, complained = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(arguments, ended.value.code, said, complained)


def releases(output: Path) -> list[Release]:
    """Every committed release, in order of offset, duplicates included."""
    return [record for record in _records(output, SKETCHES) if isinstance(record, Release)]


def markers(output: Path) -> list[CloseMarker]:
    return [record for record in _records(output, SKETCHES) if isinstance(record, CloseMarker)]


def rollups(output: Path) -> list[RollupRecord]:
    """Those that are published, with the tallies and merged sketches of their releases."""
    found = [record for record in _records(output, ROLLUPS) if isinstance(record, RollupRecord)]
    return summed(found, releases(output))


def payloads(output: Path, topic: str) -> list[bytes]:
    reader = LogReader(str(output))
    try:
        return [stored.value for stored in reader.read(topic)]
    finally:
        reader.close()


def _records(output: Path, topic: str) -> list[object]:
    return [decode(value) for value in payloads(output, topic)]


def asked(config: Path, *question: str) -> list[dict[str, Any]]:
    """The rows that `estimate` answers a question with."""
    done = here("estimate", config, *question, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def require_near(row: dict[str, Any], exact: int) -> None:
    """Six standard errors: 2e-9 two-sided."""
    assert abs(row["estimate"] - exact) <= 6 * max(row["standard_error"], 1)
