"""CPU time of the flips of a counting pipeline, while it does all else that its releases take.   flips.py CONFIG

It prints how many flips there were and how many a CPU second does. The pipeline is driven in memory, the way the worker
drives it: a flip finds the caches as a release leaves them, which a loop over flips alone does not.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from sfm_stream import kernels
from sfm_stream.cli.memory import settle_memory
from sfm_stream.config.config import load_config
from sfm_stream.events.key_table import KeyTable
from sfm_stream.pipeline.counting import releases
from sfm_stream.pipeline.counting.position import first_state
from sfm_stream.pipeline.counting.whole import counter_of
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.types import InputEnd
from sfm_stream.workers.extractor import extractor_of


def main() -> None:
    config, used, flips = load_config(Path(sys.argv[1])), 0.0, 0
    kernels.choose(sys.argv[2])
    flip_bits = releases.flip_bits

    def timed(*given, **named):
        nonlocal used, flips
        before = time.thread_time()
        try:
            return flip_bits(*given, **named)
        finally:
            used, flips = used + time.thread_time() - before, flips + 1

    releases.flip_bits = timed
    source, keys = LineInput(str(config.input_path), complete=True), KeyTable()
    plan = config.plan(1, None)
    extractor = extractor_of(config, keys, config.settings.event.latest)
    counter = counter_of(plan, 0, first_state(plan, "flips", 0, 0), keys)
    while not isinstance(batch := source.read(0), InputEnd):
        counter.add(extractor.columns([batch]))
    counter.finish()
    settle_memory()  # as a worker does
    while (step := counter.step()) is not None:
        counter.committed(step)
    print(json.dumps({"flips": flips, "rate": flips / used if flips else 0}))


if __name__ == "__main__":
    main()
