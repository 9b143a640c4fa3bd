"""How fast, per CPU second, as medians of several runs; ratios are taken within one run.

    python benchmarks/speed.py [pipeline | windows | flips | counts | estimates | memory | run | all] [--runs N]

Figures with machine and date are in docs/performance.md. Nothing here is asserted by a test.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import click
import msgspec
import numpy as np

from sfm_stream import PcsaSketch, SketchShape, Tally, estimate, flip, kernels
from sfm_stream.config.config import Config, parse_config
from sfm_stream.events.key_table import KeyTable
from sfm_stream.pipeline.counting.position import first_state
from sfm_stream.pipeline.counting.whole import counter_of
from sfm_stream.privacy.coins import SystemCoins
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.privacy.flip import flip_bits
from sfm_stream.sketch.bernoulli import WORD64, Word
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.types import EventColumns, InputEnd, RecordBatch
from sfm_stream.windows.store import WindowStore
from sfm_stream.workers.extractor import extractor_of

START_MS = 1_767_225_600_000
PAGES, EVENTS = 1_000, 400_000
CONFIG = """
pipeline.id = "bench"
input.path = "events.jsonl"
input.complete = true
event = { key = "page", item = "user", time = "at", time_unit = "ms", latest = 2027-01-01T00:00:00Z }
window = { size = "1m", grace = "10s", start = 2026-01-01T00:00:00Z }
privacy = { epsilon = 2, keys = "presence_is_public", max_epsilon_per_item_day = 10000 }
output.path = "bench.sqlite"
"""


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    before = time.process_time()
    work()
    return time.process_time() - before


def write_events(path: Path, pages: int = PAGES, users: int = 1_000_000, span_ms: int = 240_000) -> int:
    """EVENTS page views of 120 bytes; returns the bytes written."""
    rng = random.Random(1)
    with path.open("wb") as sink:
        for number in range(EVENTS):
            event = {
                "page": f"/article/{rng.randrange(pages):06d}",
                "user": f"user-{rng.randrange(users):010d}",
                "at": START_MS + number * span_ms // EVENTS,
                "agent": "Mozilla/5.0",
            }
            line = json.dumps(event, separators=(",", ":"))
            sink.write((line[:-1] + ',"_":"' + "x" * (119 - len(line) - 7) + '"}\n').encode())
    return path.stat().st_size


class Held:
    """A batch whose records are in memory already: the client is no part of the measurement."""

    def __init__(self, batch: RecordBatch) -> None:
        self.partition, self.first, self.next_offset, self.count = 0, batch.first, batch.next_offset, batch.count
        self._offsets, self._values = batch.offsets(), batch.values()

    def offsets(self) -> np.ndarray:
        return self._offsets

    def arrivals(self) -> None:
        return None

    def values(self) -> list:
        return self._values


def pipeline(runs: int, folder: Path) -> None:
    """The pipeline without a client against a loop that only decodes the same bytes."""
    size = write_events(folder / "events.jsonl")
    config = parse_config(CONFIG, folder)
    source = LineInput(str(folder / "events.jsonl"), complete=True)
    batches = []
    while not isinstance(batch := source.read(0), InputEnd):
        batches.append(Held(batch))
    values = [value for batch in batches for value in batch.values()]
    event = msgspec.defstruct("Event", [("page", str | int), ("user", str | int), ("at", int | float)], gc=False)
    decode, decode_any = msgspec.json.Decoder(event).decode, msgspec.json.Decoder().decode

    def typed() -> None:
        for value in values:
            decode(value)

    def plain() -> None:
        for value in values:
            decode_any(value)

    def count(order: Config) -> None:
        plan = order.plan(1, START_MS)
        keys = KeyTable()
        extractor = extractor_of(config, keys, START_MS + 10**9)
        state = first_state(plan, "events.jsonl", 0, 0)
        counter = counter_of(plan, 0, state, keys)
        for batch in batches:
            counter.add(extractor.columns([batch]))
        counter.finish()
        assert len(counter.base.store.live_keys()) == PAGES  # everything that is queued is sorted in as well

    in_time = config.in_order_of_time()
    figures = [(cpu(typed), cpu(plain), cpu(lambda: count(in_time)), cpu(lambda: count(config))) for _ in range(runs)]
    click.echo(f"{len(values)} events of {size / len(values):.0f} bytes, {PAGES} keys, {batches[0].count} a batch")
    for place, name in enumerate(("decode into a struct", "decode into a dict", "in order of time", "in any order")):
        rate = statistics.median(len(values) / figure[place] for figure in figures)
        ratio = statistics.median(figure[place] / figure[2] for figure in figures)
        click.echo(f"{name:<22}{rate:>12,.0f} events per CPU second; the pipeline has {ratio:.0%} of it")


class UrandomCoins:
    """For comparison: the kernel's generator without OpenSSL."""

    def digits(self, count: int) -> np.ndarray:
        return np.frombuffer(os.urandom(count), np.uint8)


def flips(runs: int, folder: Path) -> None:
    """Sketches of 4096 x 24 flipped, lazily by bytes, by whole words, and from /dev/urandom."""
    shape = SketchShape(4096, 24)
    raw = PcsaSketch(shape).add(np.arange(100_000))
    k = flip_threshold_of(2)

    def words() -> None:
        for _ in range(300):
            drawn = SystemCoins().digits(8 * shape.cells).view(np.uint64) < np.uint64(k)
            np.packbits(drawn, bitorder="little") ^ raw.bits

    ways: dict[str, Callable[[], object]] = {
        "flip()": lambda: [flip(raw, 2) for _ in range(300)],
        "lazy bytes, OpenSSL": lambda: [flip_bits(raw.bits, k, SystemCoins()) for _ in range(300)],
        "lazy bytes, urandom": lambda: [flip_bits(raw.bits, k, UrandomCoins()) for _ in range(300)],
        "lazy 4-bit digits": lambda: [flip_bits(raw.bits, k, _Nibbles(), Word(64, 4)) for _ in range(100)] * 3,
        "whole 64-bit words": words,
    }
    assert Word(64, 8) == WORD64
    for name, way in ways.items():
        way()
        calls = 100 if "4-bit" in name else 300
        rate = statistics.median(calls / cpu(way) for _ in range(runs))
        click.echo(f"{name:<22}{rate:>10,.0f} sketches per CPU second")


class _Nibbles:
    def digits(self, count: int) -> np.ndarray:
        return SystemCoins().digits(count) & np.uint8(15)


def counts(runs: int, folder: Path) -> None:
    """Releases drawn and written as records, with a noisy count and without, one after the other in each run."""
    write_events(folder / "events.jsonl")
    source = LineInput(str(folder / "events.jsonl"), complete=True)
    batches = []
    while not isinstance(batch := source.read(0), InputEnd):
        batches.append(Held(batch))

    def closing(share: str) -> float:
        config = parse_config(CONFIG.replace("epsilon = 2,", f"epsilon = 2, count_share = {share},"), folder)
        plan, keys = config.plan(1, START_MS), KeyTable()
        extractor = extractor_of(config, keys, START_MS + 10**9)
        counter = counter_of(plan, 0, first_state(plan, "events.jsonl", 0, 0), keys)
        for batch in batches:
            counter.add(extractor.columns([batch]))
        counter.finish()

        def close() -> None:
            while (step := counter.step()) is not None:
                counter.committed(step)

        return cpu(close)

    figures = [(closing("0"), closing("0.1")) for _ in range(runs)]
    releases = 4 * PAGES
    for place, name in enumerate(("without a count", "with a count")):
        rate = statistics.median(releases / figure[place] for figure in figures)
        click.echo(f"{name:<22}{rate:>12,.0f} releases per CPU second")
    click.echo(f"with a count: {statistics.median(one / none for none, one in figures) - 1:+.1%} CPU")


def estimates(runs: int, folder: Path) -> None:
    """Estimates from one sketch and from tallies of 4 and 24 windows, 4096 x 24."""
    shape = SketchShape(4096, 24)
    sketches = [flip(PcsaSketch(shape).add(np.arange(i * 1_000, i * 1_000 + 20_000)), 2) for i in range(24)]
    for name, source, calls in (
        ("one sketch", sketches[0], 500),
        ("tally of 4 windows", Tally.of(sketches[:4]), 50),
        ("tally of 24 windows", Tally.of(sketches), 20),
    ):
        estimate(source)
        rate = statistics.median(
            calls / cpu(lambda s=source, n=calls: [estimate(s) for _ in range(n)]) for _ in range(runs)
        )
        click.echo(f"{name:<22}{rate:>10,.0f} estimates per CPU second")


def memory(runs: int, folder: Path) -> None:
    """Bytes for each open key with 10 distinct items, beyond the text of the key."""
    keys, items = 100_000, 10
    names = [f"key-{number:07d}" for number in range(keys)]
    rng = np.random.default_rng(1)
    cells = rng.integers(0, 4096 * 24, keys * items).astype(np.uint32)
    tracemalloc.start()
    table, store = KeyTable(), WindowStore(SketchShape(4096, 24))
    ids = np.fromiter(map(table.intern, names), np.int32, keys)
    before_rows = tracemalloc.get_traced_memory()[0]
    rows = np.tile(ids, items)
    transient = tracemalloc.get_traced_memory()[0] - before_rows
    for start in range(0, len(rows), 5_000):
        block = slice(start, start + 5_000)
        zeros = np.zeros(len(rows[block]), np.int64)
        store.add(zeros, rows[block], cells[block], zeros)
    assert len(store.live_keys()) == keys
    held = tracemalloc.get_traced_memory()[0] - transient - ids.nbytes
    tracemalloc.stop()
    if kernels.in_use() == "native":  # the table has the texts too, in memory that is not traced
        held += sys.getsizeof(table.index) - sum(map(len, names))
    click.echo(f"{held / keys:.0f} bytes for each open key of {items} distinct items, plus the key, {kernels.in_use()}")


def windows(runs: int, folder: Path) -> None:
    """Judging and storing an event, by how many windows a thousand events of a poll spread over; one span and three."""
    events, poll, keys = 300_000, 1_000, 1_000
    rng = np.random.default_rng(1)
    key_ids = rng.integers(0, keys, events).astype(np.int32)
    cells = rng.integers(0, 4096 * 24, events).astype(np.uint32)
    offsets, clock, reasons = np.arange(events), np.arange(events) // 1_000, np.zeros(events, np.uint8)
    further = "".join(f'[[spans]]\nsize = "{size}"\nepsilon = 1\n' for size in ("hour", "day"))
    open_windows = (1, 10, 100, 600)

    def counted(spans: str, spread: int) -> float:
        config = parse_config(CONFIG.replace('grace = "10s"', 'grace = "700m"') + spans, folder).in_order_of_time()
        plan, table = config.plan(1, START_MS), KeyTable()
        for number in range(keys):
            table.intern(f"page-{number}")
        counter = counter_of(plan, 0, first_state(plan, "events.jsonl", 0, 0), table)
        last_ms = START_MS + 600 * 60_000 + clock
        event_ms = last_ms - 60_000 * rng.integers(0, spread, events)

        def add() -> None:
            for low in range(0, events, poll):
                row = slice(low, low + poll)
                times = event_ms[row], key_ids[row], cells[row], reasons[row]
                counter.add(EventColumns(0, int(offsets[row][-1]) + 1, offsets[row], last_ms[row], *times))
            counter.base.store.compact()

        return cpu(add) / events * 1e9

    for name, spans in (("windows alone", ""), ("with hours and days", further)):
        taken = [[counted(spans, spread) for spread in open_windows] for _ in range(runs)]
        for place, spread in enumerate(open_windows):
            ns = statistics.median(row[place] for row in taken)
            ratio = statistics.median(row[place] / row[0] for row in taken)
            click.echo(f"{name:<22}{spread:>5} open: {ns:>6,.0f} ns an event, {ratio:.1f} times that of one")


def run(runs: int, folder: Path) -> None:
    """`sfm-stream run` as a whole process: read, count, release, roll up, commit to disk."""
    for pages in (20, 1_000):
        write_events(folder / "events.jsonl", pages)
        (folder / "app.toml").write_text(CONFIG)
        rates = []
        for _ in range(runs):
            for stale in folder.glob("bench.sqlite*"):
                stale.unlink()
            before = os.times()
            call = [sys.executable, "-m", "sfm_stream.cli", "run", str(folder / "app.toml"), "--json"]
            report = json.loads(subprocess.run(call, check=True, capture_output=True).stdout)
            after = os.times()
            used = after.children_user + after.children_system - before.children_user - before.children_system
            rates.append((report["read"] / used, report["releases"] / used))
        events, released = (statistics.median(column) for column in zip(*rates, strict=True))
        click.echo(
            f"{pages:>5} keys x 4 windows: {events:>9,.0f} events and {released:>6,.0f} releases per CPU second "
            f"({report['releases']} releases, {report['rollups']} roll-ups, start-up included)"
        )


PARTS = {
    "pipeline": pipeline,
    "windows": windows,
    "flips": flips,
    "counts": counts,
    "estimates": estimates,
    "memory": memory,
    "run": run,
}


@click.command()
@click.argument("part", type=click.Choice([*PARTS, "all"]), default="all")
@click.option("--runs", type=click.IntRange(1), default=5, show_default=True)
def main(part: str, runs: int) -> None:
    """Measure one part or all of them."""
    for name, measure in PARTS.items():
        if part in (name, "all"):
            click.echo(f"\n{name}: {(measure.__doc__ or '').splitlines()[0]}")
            with tempfile.TemporaryDirectory() as folder:
                measure(runs, Path(folder))


if __name__ == "__main__":
    main()
