"""What a worker's heap keeps: buffers that are freed and wanted again are not mapped again."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from sfm_stream.cli.memory import KEPT_BYTES

ROUNDS, BUFFERS, BUFFER_BYTES = 50, 8, 4 * 1024 * 1024
PAGES_OF_A_ROUND = BUFFERS * BUFFER_BYTES // 4096

PROGRAM = f"""
import gc, resource, sys
from sfm_stream.cli.memory import settle_memory

if sys.argv[1] == "settled":
    settle_memory()
    assert gc.get_freeze_count() > 1000
faults = []
for _ in range({ROUNDS}):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    buffers = [bytearray(b"x") * {BUFFER_BYTES} for _ in range({BUFFERS})]
    del buffers
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(sorted(faults)[{ROUNDS} // 2])
"""


def faults_of_a_round(how: str) -> int:
    """The median number of pages that are mapped for a round of buffers, in a process of its own."""
    run = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_buffers_of_a_settled_process_stay_mapped():
    """They are half of what is kept. As the heap is by itself, each round maps them all (or large pages of them)."""
    assert BUFFERS * BUFFER_BYTES <= KEPT_BYTES // 2
    assert faults_of_a_round("settled") == 0
    assert faults_of_a_round("as it is") > PAGES_OF_A_ROUND // 1024
