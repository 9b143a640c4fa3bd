"""Pipelines on files whose pages show every state, and any key. Each has really run."""

from __future__ import annotations

import gzip
import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from support.hostile_text import HOSTILE
from support.seeded_coins import SeededCoins

from sfm_stream.answers.release_terms import release_terms
from sfm_stream.composition.files import file_workers
from sfm_stream.composition.published import published
from sfm_stream.composition.run_to_end import run_to_end
from sfm_stream.composition.stop_signal import Stop
from sfm_stream.config.config import Config, load_config
from sfm_stream.serve.served import ServedPipeline, ServedProgress

FLIGHTS = Path(__file__).parents[2] / "examples" / "flights"
SCRIPT = "<script>document.title = 'owned'</script>"
KEYS = (
    SCRIPT,
    '"><img src=x onerror="document.title=\'owned\'">',
    "' onmouseover='document.title=1",
    "{{ 7 * 7 }}",
    "a&b=c#d?e/../f%2e",
    "\u05e9\u05dc\u05d5\u05dd",
    "k" * 1000,
    "\u0e01" + "\u0e49" * 40,
    " ",
    "",
    "5",
    "(all)",
    *HOSTILE.values(),
)
"""Keys that try to leave the place where they are shown."""
_START = datetime(2026, 3, 27, 23, tzinfo=UTC)  # midnight in Berlin, two days before its clocks are put forward
_HEAD = """[pipeline]
id = "{name}"
[input]
path = "{name}.jsonl.gz"
complete = {complete}
[event]
key = "page"
item = "user"
time = "at"
time_unit = "iso8601"
[window]
size = "hour"
{window}
[rollup]
zone = "Europe/Berlin"
[output]
path = "{name}.sqlite"
[sketch]
buckets = {buckets}
levels = {levels}
[privacy]
max_epsilon_per_item_day = 1000
epsilon = {epsilon}
count_share = {share}
"""
_SELECTED = 'keys = "selected"\nepsilon_selection = 0.5\ndelta_selection = 1e-6\n'


def flights(folder: Path) -> Config:
    """The flights of the demo, by carrier."""
    shutil.copy(FLIGHTS / "january.jsonl.gz", folder)
    shutil.copy(FLIGHTS / "by_carrier.toml", folder)
    return counted(folder / "by_carrier.toml")


def visits(folder: Path) -> Config:
    """Hours and their days, over a change of clocks, of keys of many and of few users.

    Some hours are withheld, so days are lower bounds; and the last day is still open.
    """
    lines = []
    for hour in range(60):
        at = _START + timedelta(hours=hour)
        lines += [_line("/large", f"{hour % 7}-{user}", at) for user in range(400)]
        lines += [_line("/small", f"{hour % 5}-{user}", at) for user in range(26 if hour % 24 < 12 else 2)]
    window = f'grace = "0s"\nstart = {_START:%Y-%m-%dT%H:%M:%SZ}'
    text = _HEAD.format(
        name="visits", complete="false", window=window, buckets=1024, levels=16, epsilon="2", share="0.2"
    )
    return _made(folder, "visits", text + _SELECTED, lines)


def noise(folder: Path) -> Config:
    """Hours at an epsilon so small that nothing is known of them."""
    lines = [_line("/", str(user), _START + timedelta(hours=hour)) for hour in range(5) for user in range(50)]
    text = _HEAD.format(name="noise", complete="true", window="", buckets=1024, levels=16, epsilon="0.01", share="0")
    return _made(folder, "noise", text + 'keys = "declared"\ndeclared = ["/"]\n', lines)


def full(folder: Path) -> Config:
    """Hours in a sketch of 32 cells, which is full."""
    lines = [_line("/", f"{hour} {user}", _START + timedelta(hours=hour)) for hour in range(5) for user in range(2000)]
    text = _HEAD.format(name="full", complete="true", window="", buckets=16, levels=2, epsilon="4", share="0")
    return _made(folder, "full", text + 'keys = "declared"\ndeclared = ["/"]\n', lines)


def hostile(folder: Path) -> Config:
    """A public list of keys that try to get out, few of which have any user."""
    lines = [_line(key, str(user), _START) for key in KEYS[:4] for user in range(200)]
    lines.append(_line(SCRIPT, "0", _START + timedelta(hours=3)))
    text = _HEAD.format(name="hostile", complete="true", window="", buckets=1024, levels=16, epsilon="2", share="0.5")
    declared = ", ".join(_toml(key) for key in KEYS)
    return _made(folder, "hostile", text + f'keys = "declared"\ndeclared = [{declared}]\n', lines)


def counted(path: Path) -> Config:
    """The configuration of a file, once it is counted to its end, with coins that fall the same way each time."""
    config = load_config(path)
    with file_workers(config, SeededCoins(15)) as work:
        report = run_to_end(work, config.rollup.deadline, Stop())
    assert report.ingest.releases
    return config


READY = ServedProgress(True)


def served(config: Config, progress: ServedProgress = READY) -> ServedPipeline:
    """A counted pipeline, to be served."""
    return ServedPipeline(config, release_terms(config), lambda: published(config), lambda: progress, lambda: "end")


def _line(page: str, user: str, at: datetime) -> str:
    return json.dumps({"page": page, "user": user, "at": at.strftime("%Y-%m-%dT%H:%M:%SZ")})


def _made(folder: Path, name: str, text: str, lines: list[str]) -> Config:
    with gzip.open(folder / f"{name}.jsonl.gz", "wt", compresslevel=1) as sink:
        sink.write("\n".join(lines) + "\n")
    (folder / f"{name}.toml").write_text(text, "utf-8")
    return counted(folder / f"{name}.toml")


def _toml(text: str) -> str:
    """A string of TOML: each character that might be none as an escape."""
    return '"' + "".join(c if c.isascii() and c.isalnum() else f"\\U{ord(c):08x}" for c in text) + '"'
