"""sfm-stream's own rows: pipelines on a topic with and without publisher, ingest alone, restart, roll-up, and files.

All run as whoever uses them would start them: a configuration, a command of the command line, a process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.peers import checks
from benchmarks.peers.checks import Checked
from benchmarks.peers.data_sets import DataSet
from benchmarks.peers.process import Answers, Reads, Used, run
from benchmarks.peers.site import PROGRAMS, ROOT, Site
from sfm_stream.kernels import why_not

COMMAND = [sys.executable, "-m", "sfm_stream.cli"]
PIPELINE = """
[worker]
kernel = "{kernel}"
[pipeline]
id = "{id}"
[kafka]
bootstrap = {bootstrap}
topic = "{topic}"
timestamps = "create_time"
accept_any_clock = true
replication = 1
[event]
key = "page"
item = "user"
time = "ts"
time_unit = "ms"
[window]
size = "{size}"
grace = "{grace}"
start = {start}
clock_margin = "12h"
[privacy]
epsilon = 2
keys = "presence_is_public"
max_epsilon_per_item_day = 1000000
[rollup]
deadline = "2d"
[metrics]
operator = "127.0.0.1:{port}"
"""
ON_A_FILE = """
[worker]
kernel = "{kernel}"
[pipeline]
id = "files"
[input]
path = "{path}"
complete = true
[event]
key = "page"
item = "user"
time = "ts"
time_unit = "ms"
latest = 2100-01-01T00:00:00Z
[window]
size = "{size}"
[privacy]
epsilon = 2
keys = "presence_is_public"
max_epsilon_per_item_day = 1000000
[output]
path = "{out}"
"""
NEVER = "12h"
"""A grace that no window of a run outlives."""


def kernels() -> list[str]:
    """Those that can be measured here."""
    return ["python"] if why_not() else ["python", "native"]


@dataclass(frozen=True)
class Pipeline:
    """One pipeline on the topic of a data set. id begins the names of its topics."""

    path: Path
    id: str
    port: int


def pipeline(site: Site, name: str, data: DataSet, kernel: str, size: str = "1m", grace: str = "5s") -> Pipeline:
    """Its configuration, written; a window of a day holds all that there is, and none of it is released."""
    start_ms = data.start_ms - data.start_ms % 86_400_000 if size == "day" else data.start_ms
    port, path = site.port(), site.folder / f"{name}.toml"
    text = PIPELINE.format(
        kernel=kernel,
        id=name,
        bootstrap=json.dumps(site.bootstrap.split(",")),
        topic=site.topic_of(data),
        size=size,
        grace=grace,
        start=datetime.fromtimestamp(start_ms / 1000, UTC).isoformat(),
        port=port,
    )
    path.write_text(text)
    return Pipeline(path, name, port)


def ingest(publish: bool) -> Callable[[Site, str, DataSet, str], tuple[Used, Checked]]:
    """Windows of a minute are counted and released; publish: into the public topic, else into the outbox alone."""

    def measured(site: Site, name: str, data: DataSet, kernel: str) -> tuple[Used, Checked]:
        made = pipeline(site, name, data, kernel)
        out = f"{name}.{'sketches' if publish else 'outbox'}"
        call = [*COMMAND, "ingest", str(made.path), "--first-start", *([] if publish else ["--no-publish"])]
        used = run(site, call, {}, Answers(site, out, data.releases), site.folder / f"{name}.log")
        checked = checks.private(site.bootstrap, out, data)
        if publish:
            if old := site.published.get((kernel, data.name)):
                site.delete(f"{old.stem}.")
            site.published[kernel, data.name] = made.path
        return used, checked

    return measured


def without_releases(site: Site, name: str, data: DataSet, kernel: str) -> tuple[Used, Checked]:
    """All is counted, into windows of a day, of which none closes."""
    made = pipeline(site, name, data, kernel, "day", NEVER)
    return _read_all(site, made, data, "--first-start")


def restart(site: Site, name: str, data: DataSet, kernel: str) -> tuple[Used, Checked]:
    """A worker finds positions and no window closed, so it reads everything before it is where the last one was."""
    made = pipeline(site, name, data, kernel, grace=NEVER)
    first = [*COMMAND, "ingest", str(made.path), "--no-publish", "--first-start"]
    run(site, first, {}, Reads(made.port, 1), site.folder / f"{name}-first.log")
    return _read_all(site, made, data)


def _read_all(site: Site, made: Pipeline, data: DataSet, *more: str) -> tuple[Used, Checked]:
    watch = Reads(made.port, data.total)
    call = [*COMMAND, "ingest", str(made.path), "--no-publish", *more]
    used = run(site, call, {}, watch, site.folder / f"{made.id}.log")
    return used, checks.all_counted(watch.last, data)


def rollup(site: Site, name: str, data: DataSet, kernel: str) -> tuple[Used, Checked]:
    """Hours from the sketches that a run of this session has published; where none has, one is made first."""
    if (kernel, data.name) not in site.published:
        ingest(publish=True)(site, f"{name}-input", data, kernel)
    path = site.published.pop((kernel, data.name))
    out = f"{path.stem}.rollups"
    call = [*COMMAND, "rollup", str(path)]
    used = run(site, call, {}, Answers(site, out, data.pages), site.folder / f"{name}.log")
    checked = checks.rolled_up(site.bootstrap, out, data)
    site.delete(f"{path.stem}.")
    return used, checked


def files(site: Site, name: str, data: DataSet, kernel: str) -> tuple[Used, Checked]:
    """A complete file, counted whole in one window of a day: each size of file has as many releases."""
    path = _on_a_file(site, name, data, kernel, "day")
    used = run(site, [*COMMAND, "run", str(path), "--json"], {}, None, site.folder / f"{name}.log")
    lines, counted = data.total - data.pages, printed(used)["counted"]
    for left in site.folder.glob(f"{name}.sqlite*"):
        left.unlink()
    return used, Checked(counted == lines, f"{counted:,} of {lines:,} counted")


def flips(site: Site, name: str, data: DataSet, kernel: str) -> tuple[Used, Checked]:
    """The CPU time of flips among all else that a release takes; what the program prints is the rate."""
    path = _on_a_file(site, name, data, kernel, "1m")
    call = [sys.executable, str(PROGRAMS / "flips.py"), str(path), kernel]
    used = run(site, call, {"PYTHONPATH": str(ROOT)}, None, site.folder / f"{name}.log")
    flipped = printed(used)["flips"]
    return used, Checked(flipped == data.releases, f"{flipped:,} of {data.releases:,} flipped")


def printed(used: Used) -> dict[str, Any]:
    """The JSON document that a program has printed on a line of its own."""
    return dict(json.loads(next(line for line in reversed(used.said.splitlines()) if line.startswith("{"))))


def _on_a_file(site: Site, name: str, data: DataSet, kernel: str, size: str) -> Path:
    path, out = site.folder / f"{name}.toml", site.folder / f"{name}.sqlite"
    fields = {"kernel": kernel, "path": site.lines_of(data), "out": out, "size": size}
    path.write_text(ON_A_FILE.format(**fields))
    return path
