"""The log across processes: killed writers, second writers, readers beside a writer, a disk that really is full."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.log_records import record_count
from support.patience import PATIENCE_S, until

from sfm_stream.errors import StateError
from sfm_stream.transport.files.log_reader import LogReader
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Commit, Record, Step
from sfm_stream.units import ROLLUPS, SKETCHES

RECORDS = 6
KILLS = 10

# Step n: RECORDS records that begin with "step-n-", and position n. The last lines say where to die.
WRITER = """
import os, signal, sys
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Commit, Record, Step
from sfm_stream.units import ROLLUPS, SKETCHES
path, die = sys.argv[1:]
log = SqliteLog(path)
position = log.positions("w").get(0)
n = position.offset if position else 0
print("ready", flush=True)
if die == "wait":
    sys.stdin.read()
    log.close()
    sys.exit()
while True:
    n += 1
    if die != "any" and n % 5 == 0:
        dying = lambda: os.kill(os.getpid(), signal.SIGKILL)
        if die == "commit":
            log._db.set_trace_callback(lambda statement: statement == "COMMIT" and dying())
        else:
            log._db.set_progress_handler(dying, int(die))
    value = b"step-%d-" % n + os.urandom(20_000)
    records = tuple(Record(topic, 0, b"k", value, n) for topic in (SKETCHES, ROLLUPS) for _ in range({RECORDS} // 2))
    log.append("w", Step(records, (Commit(0, n, b"at %d" % n),)))
""".replace("{RECORDS}", str(RECORDS))


def start_writer(path: str, die: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, path, die], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def wait_ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"


def finish(process: subprocess.Popen[bytes]) -> bytes:
    _, errors = process.communicate(timeout=PATIENCE_S)
    return errors


def check_whole(path: str) -> int:
    """Steps in the log, after a check that records and position agree and that nothing lies beyond them."""
    log = SqliteLog(path)
    position = log.positions("w").get(0)
    steps = position.offset if position else 0
    for topic in (SKETCHES, ROLLUPS):
        found = [int(record.value.split(b"-", 2)[1]) for record in log.read(topic)]
        assert found == [n for n in range(1, steps + 1) for _ in range(RECORDS // 2)]
    assert position is None or position.metadata == b"at %d" % steps
    assert log._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    # Draws that never were committed do not linger in the file once it was opened again.
    raw = b"".join(Path(path + end).read_bytes() for end in ("", "-wal"))
    assert b"step-%d-" % (steps + 1) not in raw
    log.close()
    return steps


def test_a_writer_killed_at_any_moment_leaves_whole_steps(tmp_path: Path) -> None:
    path = str(tmp_path / "log.sqlite")
    steps = 0
    moments = random.Random(5)
    for kill in range(KILLS):
        process = start_writer(path, "any")
        if kill % 4:
            wait_ready(process)
            time.sleep(moments.uniform(0, 0.06))
        else:
            time.sleep(moments.uniform(0.1, 0.4))
        process.send_signal(signal.SIGKILL)
        finish(process)
        reached = check_whole(path)
        assert reached >= steps
        steps = reached
    process = start_writer(path, "any")
    wait_ready(process)
    reader = LogReader(path)
    until(lambda: record_count(reader, SKETCHES) > steps * RECORDS // 2)
    reader.close()
    process.kill()
    finish(process)
    assert check_whole(path) > steps


@pytest.mark.parametrize("die", ["20", "60", "100", "commit"])
def test_a_writer_killed_inside_a_transaction_leaves_the_step_before(tmp_path: Path, die: str) -> None:
    path = str(tmp_path / "log.sqlite")
    process = start_writer(path, die)
    wait_ready(process)
    assert finish(process) == b""
    assert process.returncode == -signal.SIGKILL
    # A reader that comes before the next writer sees the same.
    reader = LogReader(path)
    assert record_count(reader, SKETCHES) == 4 * RECORDS // 2
    assert reader.positions("w") == {0: Commit(0, 4, b"at 4")}
    reader.close()
    assert check_whole(path) == 4


def test_two_processes_cannot_write(tmp_path: Path) -> None:
    path = str(tmp_path / "log.sqlite")
    first = start_writer(path, "wait")
    wait_ready(first)
    second = start_writer(path, "wait")
    errors = finish(second)
    assert second.returncode == 1
    assert b"another process (%d) is writing" % first.pid in errors
    with pytest.raises(StateError, match=rf"another process \({first.pid}\)"):
        SqliteLog(path)
    assert finish(first) == b""
    SqliteLog(path).close()


READER = """
import sys, time
from sfm_stream.transport.files.log_reader import LogReader
from sfm_stream.units import SKETCHES
path, size, until = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
reader = LogReader(path)
print("ready", flush=True)
counts = set()
while (count := reader.end_offset(SKETCHES, 0)) < until:
    assert count % size == 0, count
    values = [record.value for record in reader.read(SKETCHES)]
    assert len(values) % size == 0 and len(values) >= count
    assert [int(value) for value in values] == sorted(int(value) for value in values)
    if count not in counts:
        print("saw", flush=True)
    counts.add(count)
print(len(counts), flush=True)
sys.stdin.read()
print(reader.end_offset(SKETCHES, 0))
"""


def test_another_process_reads_whole_steps_while_one_writes_and_after_it_closed(tmp_path: Path) -> None:
    path = str(tmp_path / "log.sqlite")
    log = SqliteLog(path)
    command = [sys.executable, "-c", READER, path, "7", "700"]
    reader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    wait_ready(reader)
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"saw\n"  # the empty log
    for n in range(100):
        log.append("w", Step(tuple(Record(SKETCHES, 0, b"k", b"%d" % n, 0) for _ in range(7))))
        if n < 5:
            assert reader.stdout.readline() == b"saw\n", "it does not look while the log is written"
    while (said := reader.stdout.readline()) == b"saw\n":
        pass
    assert int(said) > 5
    log.close()
    # The writer has gone, and a new one comes while the reader is connected.
    log = SqliteLog(path)
    log.append("w", Step((Record(SKETCHES, 0, b"k", b"100", 0),)))
    log.close()
    output, _ = reader.communicate(timeout=PATIENCE_S)
    assert int(output) == 701
    fresh = LogReader(path)
    assert record_count(fresh, SKETCHES) == 701
    fresh.close()


FULL_DISK = """
import resource, sys
from sfm_stream.errors import StorageError
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Commit, Record, Step
from sfm_stream.units import ROLLUPS, SKETCHES
log = SqliteLog(sys.argv[1])
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
n = 0
try:
    while n < 100:
        step = Step((Record(SKETCHES, 0, b"k", b"%d-" % n + bytes(50_000), 0),) * 2, (Commit(0, n, b""),))
        log.append("w", step)
        n += 1
except StorageError as error:
    print(error)
assert 0 < n < 100
assert log.end_offset(SKETCHES, 0) == 2 * n and log.positions("w")[0].offset == n - 1
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
assert log.append("w", step)
assert log.end_offset(SKETCHES, 0) == 2 * n + 2 and log.positions("w")[0].offset == n
log.close()
log = SqliteLog(sys.argv[1])
assert log.end_offset(SKETCHES, 0) == 2 * n + 2 and log.positions("w")[0].offset == n
"""


def test_writes_that_the_system_refuses_are_undone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "log.sqlite")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert "cannot write" in done.stdout


def test_a_killed_writer_does_not_keep_the_lock(tmp_path: Path) -> None:
    path = str(tmp_path / "log.sqlite")
    process = start_writer(path, "wait")
    wait_ready(process)
    os.kill(process.pid, signal.SIGKILL)
    finish(process)
    SqliteLog(path).close()
