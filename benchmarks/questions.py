"""What a question takes: CPU seconds and peak memory of `estimate` and `export`, over output files of two lengths.

Run from the root of the repository: python benchmarks/questions.py [--keys N] [--hours N] [--times N] [--minutes N]
[--buckets N] [--only TEXT] [--against PATH]. It makes a file of so many hours and one of --times as many, with windows
of so many minutes, hours, and random sketches of so many buckets x 24 cells, and asks both. --only: questions whose
name begins with this. --against: a folder with another version of the package that can read these files, which is
asked the same in turn; whether it answers the same is said.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.agreement import SketchKind
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Record, Step, Window
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord, encode
from sfm_stream.wire.keys import encode_key

ROOT = Path(__file__).resolve().parent.parent
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
START_MS = 1_767_225_600_000
K = flip_threshold_of(Decimal(4))
LEVELS = 24
SOURCE = {"pipeline": "views", "epoch": 1, "partition": 0, "partitions": 1}
CONFIG = """
[pipeline]
id = "views"
[input]
path = "in.jsonl"
complete = true
[event]
key = "page"
item = "user"
time = "at"
time_unit = "ms"
latest = 2026-12-31T00:00:00Z
[window]
size = "{minutes}m"
grace = "1m"
start = 2026-01-01T00:00:00Z
end = 2026-12-01T00:00:00Z
[sketch]
buckets = {buckets}
levels = 24
[privacy]
epsilon = 4
count_share = 0
keys = "selected"
epsilon_selection = 0.5
delta_selection = 1e-6
max_epsilon_per_item_day = 10000
[output]
path = "out.sqlite"
"""


def instant(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat()


class History:
    """Made-up releases, and the hours of them. Bits are random: what they say is not what is measured.

    share: of the releases that are there; the others are withheld, of random keys in random windows.
    """

    def __init__(self, keys: int, buckets: int, minutes: int, share: float = 1.0) -> None:
        self.name, self.size_ms = f"{minutes}m", minutes * MINUTE_MS
        self.keys = sorted(encode_key(f"/page/{number}") for number in range(keys))
        self.shape = SketchShape(buckets, LEVELS)
        self.rng, self.withheld, self.share = np.random.default_rng(1), np.random.default_rng(2), share

    def hour(self, number: int) -> Iterator[list[Record]]:
        low = START_MS + number * HOUR_MS
        for start in range(low, low + HOUR_MS, self.size_ms):
            records = []
            for key in self.keys:
                if self.share < 1.0 and self.withheld.random() >= self.share:
                    continue
                sketch = SfmSketch(self.shape, K, "xxh64", self.rng.bytes(self.shape.nbytes))
                window = Window(start, start + self.size_ms)
                release = Release(**SOURCE, window=window, key=key, unit="removed", sketch=sketch, span=self.name)
                records.append(Record(SKETCHES, 0, key, encode(release), start + self.size_ms))
            covered = {
                "start_ms": start,
                "through_ms": start + self.size_ms,
                "window_ms": self.size_ms,
                "span": self.name,
            }
            marker = encode(CloseMarker(**SOURCE, **covered, fingerprint="ab", spans=(self.name,)))
            yield [*records, Record(SKETCHES, 0, b"", marker, start + self.size_ms)]
        yield [Record(ROLLUPS, 0, key, encode(self.rollup(low, key)), low + HOUR_MS) for key in self.keys]

    def rollup(self, low: int, key: bytes) -> RollupRecord:
        windows = HOUR_MS // self.size_ms
        coverage = {"windows": windows, "decided": windows, "released": windows, "complete": True, "revision": 24}
        figures = {"value": 5.0, "standard_error": 1.0, "low": 4.0, "high": 6.0, "confidence": 0.95, "status": "ok"}
        record = {"grain": "hour", "window": Window(low, low + HOUR_MS), "zone": "UTC", "key": key, "unit": "removed"}
        named = {"origin": "merged", "span": self.name, "kind": SketchKind(self.shape, K, "xxh64")}
        return RollupRecord(**SOURCE, **record, **coverage, **figures, **named, tally=None, merged=None)


def make(folder: Path, keys: int, hours: int, buckets: int, minutes: int, share: float = 1.0) -> None:
    folder.mkdir()
    (folder / "app.toml").write_text(CONFIG.format(buckets=buckets, minutes=minutes))
    history, log, payload = History(keys, buckets, minutes, share), SqliteLog(str(folder / "out.sqlite")), 0
    for number in range(hours):
        for records in history.hour(number):
            payload += sum(len(record.value) + len(record.key) for record in records)
            log.append("made/up", Step(tuple(records)))
    log.close()
    size = (folder / "out.sqlite").stat().st_size
    print(f"{folder.name}: {keys} keys, {hours} hours, {payload / 1e6:.1f} MB in a file {size / payload:.3f} times it")


def ask(package: Path, config: Path, arguments: list[str]) -> tuple[float, float, str]:
    """CPU seconds, peak of resident memory in MB and digest of the output of a command of this package.

    A new process is charged with what its parent has at the time, so nothing large is held here.
    """
    command = [sys.executable, "-m", "sfm_stream.cli", arguments[0], str(config), *arguments[1:]]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=package, stdout=output, stderr=output)
        _, status, used = os.wait4(process.pid, 0)
        output.seek(0)
        if status:
            print(output.read().decode()[-300:])
        said = hashlib.file_digest(output, "sha256").hexdigest()
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1000, said


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("keys", 100), ("hours", 6), ("times", 4), ("buckets", 4096), ("minutes", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    packages = [("this", ROOT), *([("other", given.against)] if given.against else [])]
    with tempfile.TemporaryDirectory() as folder:
        lengths = sorted({given.hours, given.hours * given.times})
        folders = [Path(folder) / f"h{hours}" for hours in lengths]
        for of_length, hours in zip(folders, lengths, strict=True):
            facts = (of_length, given.keys, hours, given.buckets, given.minutes)
            maker = multiprocessing.get_context("spawn").Process(target=make, args=facts)
            maker.start()
            maker.join()
        configs = [of_length / "app.toml" for of_length in folders]
        middle = START_MS + given.hours // 2 * HOUR_MS
        hour = ["--from", instant(middle), "--to", instant(middle + HOUR_MS)]
        everything = ["--from", instant(START_MS), "--to"]
        one = ["--key", "/page/1"]
        questions = {
            "one key, windows of an hour": ["estimate", *hour, *one, "--by", "window", "--json"],
            "one key, an hour from windows": ["estimate", *hour, *one, "--json"],
            "one key, an hour": ["estimate", *hour, *one, "--by", "hour", "--json"],
            "one key, the last 2 hours": ["estimate", "--last", "2h", *one, "--json"],
            "all keys, an hour from windows": ["estimate", *hour, "--json"],
            "one key, all hours": ["estimate", *one, "--by", "hour", "--json"],
            "one key, all of the time": ["estimate", *everything, "END", *one, "--json"],
            "all keys, all hours": ["estimate", "--by", "hour", "--json"],
            "all keys, all hours, as a table": ["estimate", "--by", "hour"],
            "all keys, all of the time": ["estimate", *everything, "END", "--json"],
            "all keys, the last 7 days": ["estimate", "--last", "7d", "--json"],
            "all keys, export of hours": ["export", "--topic", "rollups", "--out", "-"],
            "all keys, export of windows": ["export", "--out", "-"],
            "all keys, all windows": ["estimate", "--by", "window", "--json"],
        }
        print(f"{'':34}" + "".join(f"{name + ' h' + str(hours):>22}" for hours in lengths for name, _ in packages))
        for question, arguments in questions.items():
            if not question.startswith(given.only):
                continue
            cells, said = [], {}
            for config, hours in zip(configs, lengths, strict=True):
                asked = [instant(START_MS + hours * HOUR_MS) if each == "END" else each for each in arguments]
                for name, package in packages:
                    runs = [ask(package, config, asked) for _ in range(given.runs)]
                    cpu, rss, said[name] = sorted(runs)[len(runs) // 2]
                    cells.append(f"{cpu:9.2f} s {rss:6.0f} MB")
                if len(set(said.values())) > 1:
                    cells.append(" DIFFERENT ANSWERS")
            print(f"{question:34}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
