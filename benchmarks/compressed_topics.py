"""What compression of the output topics would save in bytes, and cost in CPU, by epsilon.

    python benchmarks/compressed_topics.py

A batch of 84 releases (1 MiB) of 4096 x 24 cells, as the client compresses it, and as a reader decompresses it. CPU
microseconds a release, the least of three runs; bytes in % of what they are uncompressed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from kafka import codec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.privacy.flip import flip_bits
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.transport.kafka.kafka_python.batch_body import body
from sfm_stream.types import Record, Window
from sfm_stream.units import SKETCHES
from sfm_stream.wire.codec import Release
from sfm_stream.wire.keys import encode_key
from sfm_stream.wire.release_form import ReleaseForm

SHAPE = SketchShape(4096, 24)
RELEASES = 84
CODECS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    name: (getattr(codec, f"{name}_encode"), getattr(codec, f"{name}_decode"))
    for name in ("snappy", "lz4", "zstd", "gzip")
}


class SeededCoins:
    """Coins that are the same in each run; nothing is released."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(1)

    def digits(self, count: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        return self._rng.integers(0, 256, count, dtype=np.uint8)


def batch(epsilon: float, items: int) -> bytes:
    """The records of releases with so many distinct items each."""
    rng, coins, threshold = np.random.default_rng(2), SeededCoins(), flip_threshold_of(epsilon)
    window = Window(0, 60_000)
    records, form = [], None
    for number in range(RELEASES):
        cells = np.zeros(SHAPE.cells, np.bool_)
        levels = np.minimum(rng.geometric(0.5, items) - 1, SHAPE.levels - 1)
        cells[levels * SHAPE.buckets + rng.integers(0, SHAPE.buckets, items)] = True
        bits = flip_bits(np.packbits(cells, bitorder="little"), threshold, coins).tobytes()
        key = encode_key(f"/page-{number}")
        if form is None:
            sketch = SfmSketch(SHAPE, threshold, "xxh64", bits)
            form = ReleaseForm(Release("page-views", 1, 0, 1, window, key, "removed", sketch))
        records.append(Record(SKETCHES, 0, key, form.write(key, bits, None), window.end_ms))
    return body(records)


def microseconds(work: Callable[[bytes], bytes], data: bytes) -> float:
    """CPU time a release, the least of three runs."""
    runs = []
    for _ in range(3):
        before = time.thread_time()
        work(data)
        runs.append(time.thread_time() - before)
    return min(runs) * 1e6 / RELEASES


def main() -> None:
    print(f"{'epsilon':>8} {'items':>7} " + "".join(f"{name + ': bytes, write, read':>30}" for name in CODECS))
    for epsilon in (0.25, 0.5, 1, 2, 4, 8):
        for items in (100, 100_000):
            data, columns = batch(epsilon, items), []
            for encode, decode in CODECS.values():
                small = encode(data)
                write, read = microseconds(encode, data), microseconds(decode, small)
                columns.append(f"{100 * len(small) / len(data):.0f} %, {write:.0f} us, {read:.0f} us")
            print(f"{epsilon:8} {items:7} " + "".join(f"{column:>30}" for column in columns))


if __name__ == "__main__":
    main()
