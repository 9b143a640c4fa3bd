"""Flips of sketches, as a worker's releases make them, by each kernel: sketches per CPU second, and the cost of a cell.

    python benchmarks/flips.py

Kernels and sizes take turns within each repetition, so that what else the machine does falls on all of them alike;
medians over repetitions. "coins" is OpenSSL's part of a flip, which no kernel can save.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np

from sfm_stream import kernels
from sfm_stream.privacy.coins import SYSTEM_COINS
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.privacy.flip import flip_bits
from sfm_stream.sketch.compiled_coins import draw

LEVELS = 24
BUCKETS = (64, 256, 1024, 4096, 16384, 65536)
REPETITIONS = 9
CELLS_A_RUN = 4_000_000


def cpu_s(work: Callable[[], object], times: int) -> float:
    """CPU seconds of one call."""
    before = process_time()
    for _ in range(times):
        work()
    return (process_time() - before) / times


def main() -> None:
    """Print a row for each size."""
    threshold = flip_threshold_of(1)
    settings: list[kernels.Setting] = ["python"] if kernels.why_not() else ["python", "native"]
    names = ["coins", *settings]
    spent: dict[tuple[int, str], list[float]] = {(buckets, name): [] for buckets in BUCKETS for name in names}
    for _ in range(REPETITIONS):
        for buckets in BUCKETS:
            cells = buckets * LEVELS
            bits, times = np.zeros(cells // 8, np.uint8), max(3, CELLS_A_RUN // cells)
            spent[buckets, "coins"].append(cpu_s(lambda cells=cells: ssl.RAND_bytes(cells), times))
            for setting in settings:
                kernels.choose(setting)
                flip = cpu_s(lambda bits=bits: flip_bits(bits, threshold, SYSTEM_COINS, draw=draw).tobytes(), times)
                spent[buckets, setting].append(flip)
    print("| buckets x 24 |" + "".join(f" {name}, us | ns a cell |" for name in names))
    for buckets in BUCKETS:
        seconds = [median(spent[buckets, name]) for name in names]
        row = "".join(f" {1e6 * each:.1f} | {1e9 * each / (buckets * LEVELS):.2f} |" for each in seconds)
        print(f"| {buckets} |{row}")


if __name__ == "__main__":
    main()
