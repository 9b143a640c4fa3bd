"""What `sfm-stream serve` takes for an answer: milliseconds of CPU over HTTP, over output files of two lengths.

Run from the root of the repository: python benchmarks/served.py [--keys N] [--days N] [--times N] [--buckets N]
[--asked N] [--folder PATH]. It makes a file of so many days and one of --times as many, with windows of an hour, hours
and days, and random sketches of so many buckets x 24 cells, and asks a server of each, in this process: what the client
takes is in the figures. No question is asked twice but those named "again": each is of another key or day, so no
answer is known. --folder: where the files are, or are made and left.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.questions import CONFIG, START_MS, History, instant
from sfm_stream.config.config import load_config
from sfm_stream.serve.server import serving
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Record, Step, Window
from sfm_stream.units import DAY_MS, ROLLUPS
from sfm_stream.wire.codec import encode

Params = dict[str, str]
HOURS = 24


class Days(History):
    """Hours of made-up releases, and their days."""

    def __init__(self, keys: int, buckets: int) -> None:
        super().__init__(keys, buckets, 60)
        self.name = "1h"

    def day(self, number: int) -> list[Record]:
        low = START_MS + number * DAY_MS
        records = []
        for key in self.keys:
            made = replace(
                self.rollup(low, key),
                grain="day",
                window=Window(low, low + DAY_MS),
                windows=HOURS,
                decided=HOURS,
                released=HOURS,
            )
            records.append(Record(ROLLUPS, 0, key, encode(made), low + DAY_MS))
        return records


def make(folder: Path, keys: int, days: int, buckets: int) -> Path:
    config = folder / "app.toml"
    if config.exists():
        return config
    folder.mkdir(parents=True)
    history, log = Days(keys, buckets), SqliteLog(str(folder / "out.sqlite"))
    for number in range(days):
        for hour in range(HOURS):
            records = [record for each in history.hour(number * HOURS + hour) for record in each]
            log.append("made/up", Step(tuple(records)))
        log.append("made/up", Step(tuple(history.day(number))))
    log.close()
    config.write_text(CONFIG.format(buckets=buckets, minutes=60).replace('"60m"', '"1h"'))
    return config


def questions(keys: int, days: int, asked: int) -> Iterator[tuple[str, str, list[Params]]]:
    """A name, an address, what is asked of it one after the other. Spans lie in the first days, whatever follows."""

    def span(first: int, count: int = 1) -> Params:
        low = START_MS + first * DAY_MS
        return {"from": instant(low), "to": instant(low + count * DAY_MS)}

    pages = [f"/page/{number % keys}" for number in range(7, 7 + asked)]
    first = [number % days for number in range(asked)]
    yield (
        "one key by hour, the whole span",
        "estimates",
        [span(0, days) | {"key": page, "by": "hour"} for page in pages],
    )
    yield "one key by day, the whole span", "estimates", [span(0, days) | {"key": page, "by": "day"} for page in pages]
    yield "one key, one day as a union", "estimates", [span(0) | {"key": page} for page in pages]
    yield "one key, the last 7 days", "estimates", [{"key": page, "last": "7d"} for page in pages]
    yield "all keys of a day", "estimates", [span(day) | {"by": "day"} for day in first]
    yield "top 10 of a day", "top", [span(day) | {"by": "day"} for day in first]
    yield "top 10 of a day again", "top", [span(0) | {"by": "day"}] * asked
    yield "keys, a page of 100", "keys", [{"limit": "100", "after": page} for page in pages]
    yield "how far it is", "completeness", [{}] * asked


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("keys", 1000), ("days", 7), ("times", 4), ("buckets", 64), ("asked", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder, table = given.folder or Path(temporary), dict[str, list[str]]()
        lengths = [given.days, given.days * given.times]
        for days in lengths:
            config = load_config(make(folder / f"d{days}", given.keys, days, given.buckets))
            size = config.output_path.stat().st_size
            print(f"{days} days, {given.keys} keys: a file of {size / 1e6:.0f} MB", flush=True)
            with serving([config], "127.0.0.1:0") as server:
                client = httpx.Client(base_url=f"http://{server.host}:{server.port}/v1/pipelines/views/", timeout=600)
                for name, path, asked in questions(given.keys, given.days, given.asked):
                    client.get(path, params=asked[0]).raise_for_status()  # pages and code are warm from here on
                    taken, rows = [], 0
                    for params in asked[1:]:
                        began = time.process_time()
                        answer = client.get(path, params=params).raise_for_status().json()
                        taken.append(1000 * (time.process_time() - began))
                        rows = len(answer.get("rows", answer.get("keys", [])))
                    of_rows = f"{rows} rows" if rows else ""
                    cell = f"{statistics.median(taken):8.1f} {max(taken):8.1f} {of_rows:>9}"
                    table.setdefault(name, []).append(cell)
        heads = "".join(f"{f'{days} days: median, most CPU ms':>30}" for days in lengths)
        print(f"{'':34}{heads}")
        for name, cells in table.items():
            print(f"{name:34}" + "".join(f"{cell:>30}" for cell in cells))


if __name__ == "__main__":
    main()
