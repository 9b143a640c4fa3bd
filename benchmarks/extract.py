"""Extraction against bare loops over the same bytes, in CPU time for each event, with both kernels.

Run from the root of the repository: python benchmarks/extract.py [events]. Medians of several runs, taken in turns so
that whatever else the machine does falls on all alike. Records are in batches as Kafka stores them, of one record, ten,
a hundred, and 16 KiB (the default of the Java producer), all those of a poll at once; or lines of a file.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import xxhash
from kafka.record.default_records import DefaultRecordBatchBuilder

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sfm_stream import kernels
from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.extract import Extractor, PythonExtractor
from sfm_stream.events.formats.registry import format_of
from sfm_stream.events.key_table import KeyTable
from sfm_stream.events.native_extractor import NativeExtractor, plain_records
from sfm_stream.sketch.hashing import XXH64
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.transport.files.line_batch import LineBatch
from sfm_stream.transport.kafka.kafka_python.batches import KafkaBatch
from sfm_stream.types import RecordBatch

RUNS = 9
SHAPE = SketchShape(4096, 24)
POLL_BYTES = 1 << 19
BATCH_RECORDS = {"1 record": 1, "10 records": 10, "100 records": 100, "16 KiB": 126}
START_MS = 1_700_000_000_000
SCHEMA = EventSchema(
    key=("page",), item="user", time="at", time_unit="ms", earliest_ms=START_MS, latest_ms=START_MS + 10**9
)


class Event(msgspec.Struct):
    """What a program that only decodes would write."""

    page: str
    user: str
    at: int


def records(count: int, pages: int = 1000) -> list[bytes]:
    """About 120 bytes each: one user in a billion, integer milliseconds."""
    draw = random.Random(1)
    return [
        b'{"page":"page-%d","user":"user-%09d","at":%d,"session":"%08x","referrer":"/p/%d","spent":%d}'
        % (
            draw.randrange(pages),
            draw.randrange(10**9),
            START_MS + number * 7,
            draw.getrandbits(32),
            draw.randrange(10**6),
            draw.randrange(5000),
        )
        for number in range(count)
    ]


def wire(lines: list[bytes], batch_records: int) -> list[bytes]:
    """Batches as a producer sends them, uncompressed. All begin at offset 0."""
    batches = []
    for start in range(0, len(lines), batch_records):
        builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 30)
        for delta, line in enumerate(lines[start : start + batch_records]):
            builder.append(delta, START_MS, None, line, ())
        batches.append(bytes(builder.build()))
    return batches


def decode(lines: list[bytes], decoder: msgspec.json.Decoder) -> None:
    for line in lines:
        decoder.decode(line)


def by_hand(lines: list[bytes]) -> None:
    """What a program needs that counts by itself: columns of key ids, cells and times, of a thousand records each."""
    decoder, ids = msgspec.json.Decoder(Event), dict[str, int]()
    for start in range(0, len(lines), 1000):
        events = list(map(decoder.decode, lines[start : start + 1000]))
        np.array([ids.setdefault(event.page, len(ids)) for event in events], np.int32)
        np.array([event.at for event in events], np.int64)
        hashes = [xxhash.xxh64_intdigest(event.user.encode()) for event in events]
        SHAPE.cells_of(np.array(hashes, np.uint64))


def extract(kernel: kernels.Setting, polls: list[list[bytes]], batch: Callable[[list[bytes]], RecordBatch]) -> None:
    kernels.choose(kernel)
    python = PythonExtractor(format_of(SCHEMA), SHAPE, keys=KeyTable())
    plain = plain_records(SCHEMA, SHAPE, XXH64)
    extractor: Extractor = python if plain is None else NativeExtractor(plain, python)
    for poll in polls:
        extractor.columns([batch(poll)])


def polls_of(batches: list[bytes]) -> list[list[bytes]]:
    """About POLL_BYTES in each."""
    each = max(1, POLL_BYTES * len(batches) // sum(map(len, batches)))
    return [batches[start : start + each] for start in range(0, len(batches), each)]


def contenders(lines: list[bytes]) -> dict[str, Callable[[], None]]:
    """Name to what is measured; the loops first."""
    typed, untyped = msgspec.json.Decoder(Event), msgspec.json.Decoder()
    found: dict[str, Callable[[], None]] = {
        "loop, untyped decoder": lambda: decode(lines, untyped),
        "loop, typed decoder": lambda: decode(lines, typed),
        "loop, typed decoder, key ids, hashes, cells": lambda: by_hand(lines),
    }
    inputs: dict[str, tuple[list[list[bytes]], Callable[[list[bytes]], RecordBatch]]] = {
        f"batches of {name}": (polls_of(wire(lines, size)), lambda poll: KafkaBatch(0, 0, 1 << 40, poll))
        for name, size in BATCH_RECORDS.items()
    }
    text = [b"".join(line + b"\n" for line in lines[start : start + 4000]) for start in range(0, len(lines), 4000)]
    inputs["lines of a file"] = ([[chunk] for chunk in text], lambda poll: LineBatch(poll[0], 0, len(poll[0])))
    for name, (polls, batch) in inputs.items():
        for kernel in ("python", *([] if kernels.why_not() else ["native"])):
            found[f"{kernel}, {name}"] = lambda kernel=kernel, polls=polls, batch=batch: extract(kernel, polls, batch)
    return found


def main(count: int) -> None:
    """Print a line for each contender, and how many times faster than each loop it is."""
    for pages in (1000, 1_000_000):
        lines = records(count, pages)
        work = contenders(lines)
        taken: dict[str, list[float]] = {name: [] for name in work}
        for _ in range(RUNS):
            for name, each in work.items():
                taken[name].append(cpu_seconds(each))
        print(f"{count} records of {sum(map(len, lines)) / count:.0f} bytes, {pages} keys, {RUNS} runs")
        loops = list(taken)[1:3]
        for name, seconds in taken.items():
            shares = [statistics.median(o / s for o, s in zip(taken[loop], seconds, strict=True)) for loop in loops]
            said = "  ".join(f"{share:5.2f} of {loop}" for share, loop in zip(shares, loops, strict=True))
            print(f"{name:44} {statistics.median(seconds) / count * 1e9:6.0f} ns  {said}")


def cpu_seconds(work: Callable[[], None]) -> float:
    """CPU time of one run."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
