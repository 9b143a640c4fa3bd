"""The curves: which points each has, and what its axes say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmarks.curves.point import Point


@dataclass(frozen=True)
class Curve:
    """points: what stands on the x axis to what is measured there. unit: of the y axis. linear: where y should be a
    straight line through the origin: shown with the line through the last point. cost_s: about, of all points."""

    name: str
    title: str
    x: str
    unit: str
    points: Mapping[str, Point]
    cost_s: float
    linear: bool = False


BASE = Point("cost")
RELEASE = Point("release", keys=300, items=100)
MEMORY = Point("memory", keys=100_000, repetitions=1)
PARTITIONS = (1, 2, 4)
"""Of a topic on a broker, which one process reads; cli.py measures these, by whole processes."""

CURVES = (
    Curve(
        "keys",
        "keys that are open",
        "open keys",
        "ns an event",
        {f"{n:,}": replace(BASE, keys=n, events=400_000) for n in (10, 100, 1_000, 10_000, 100_000, 1_000_000)},
        150,
    ),
    Curve(
        "windows",
        "windows that are open",
        "open windows",
        "ns an event",
        {f"{n:,}": replace(BASE, windows=n) for n in (1, 6, 60, 600)},
        40,
    ),
    Curve(
        "batches",
        "records of a batch",
        "records a batch",
        "ns an event",
        {str(n): replace(BASE, a_batch=n, events=100_000) for n in (1, 10, 100)} | {"16 KiB": BASE},
        45,
    ),
    Curve(
        "codecs",
        "compression of the input",
        "codec, batches of 16 KiB",
        "ns an event",
        {codec: replace(BASE, codec=codec) for codec in ("none", "gzip", "snappy", "lz4", "zstd")},
        50,
    ),
    Curve(
        "buckets",
        "buckets of a sketch, 24 levels",
        "buckets",
        "us a release",
        {f"{n:,}": replace(RELEASE, buckets=n) for n in (64, 256, 1024, 4096, 16_384, 65_536)},
        45,
        linear=True,
    ),
    Curve(
        "memory",
        "memory of an open key",
        "items of a key",
        "bytes an open key",
        {str(n): replace(MEMORY, items=n, keys=100_000 if n < 100 else 10_000) for n in (1, 4, 10, 100)},
        90,
    ),
)
