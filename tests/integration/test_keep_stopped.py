"""`sfm-stream keep-stopped` with real processes: what it does after each exit code of a worker, and with signals."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.patience import PATIENCE_S, until

from sfm_stream.composition.kept_stopped import STAYS_STOPPED
from sfm_stream.errors import SfmStreamError

ROOT = Path(__file__).resolve().parents[2]
OPERATING = (ROOT / "docs/operating.md").read_text("utf-8")
KEPT = """
import sys
from pathlib import Path
from sfm_stream.composition.kept_stopped import run_kept_stopped
note, address, *command = sys.argv[1:]
program = (sys.executable, "-c", {worker!r})
sys.exit(run_kept_stopped(command, address, Path(note) if note else None, program))
"""
ENDS = "import sys; print('a worker'); sys.exit(int(sys.argv[2]))"
KILLED = "import os; os.kill(os.getpid(), 9)"
WAITS = """
import signal, sys
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(int(sys.argv[2])))
print('a worker', flush=True)
signal.pause()
"""
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a process; at the end none is left."""
    started: list[subprocess.Popen[str]] = []

    def process(*call: object) -> subprocess.Popen[str]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen([sys.executable, *map(str, call)], text=True, **pipes))
        return started[-1]

    yield process
    for each in started:
        each.kill()
        each.communicate()


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def kept(start: Start, worker: str, code: int = 0, note: object = "", address: str = "") -> subprocess.Popen[str]:
    return start("-c", KEPT.format(worker=worker), note, address, "ingest", str(code))


def page(address: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}/{path}", timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read().decode()
    except OSError:
        return 0, ""


def stays(process: subprocess.Popen[str], code: int) -> None:
    """Wait until it says that it stays after this exit code. The line is its last before it waits for a signal."""
    for line in process.stderr:
        if f"exit code {code}: a person has to look" in line:
            assert "This process stays" in line
            return
    raise AssertionError(f"ended with {process.wait(PATIENCE_S)}")


def every_error() -> Iterator[type[SfmStreamError]]:
    found = [SfmStreamError]
    while found:
        yield (each := found.pop())
        found += each.__subclasses__()


def test_the_codes_are_those_of_the_page_for_operators():
    [listed] = re.findall(r"`RestartPreventExitStatus=([\d ]+)`", OPERATING)
    assert {int(code) for code in listed.split()} == STAYS_STOPPED


def test_every_code_of_an_error_is_decided():
    """1 and 7 may be started again; 9 is none of a worker."""
    assert {each.exit_code for each in every_error()} == STAYS_STOPPED | {1, 7, 9}


@pytest.mark.parametrize("code", [0, 1, 7, 141, 143])
def test_after_any_other_code_it_ends_as_the_worker_did_and_leaves_no_note(start, tmp_path, code):
    process = kept(start, ENDS, code, tmp_path / "note")
    assert process.wait(PATIENCE_S) == code
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_was_killed_is_started_again_by_whoever_starts_things_again(start, tmp_path):
    assert kept(start, KILLED, note=tmp_path / "note").wait(PATIENCE_S) == 128 + signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", sorted(STAYS_STOPPED))
def test_it_stays_where_a_person_has_to_look_and_so_does_its_next_start(start, tmp_path, code):
    for worker_runs in (True, False):
        process = kept(start, ENDS, code, tmp_path / "note")
        stays(process, code)
        assert process.poll() is None
        assert (tmp_path / "note").read_text() == f"{code}\n"
        process.terminate()
        out, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == code
        assert ("a worker" in out) == worker_runs


def test_a_note_that_is_deleted_lets_the_worker_start_again(start, tmp_path):
    (tmp_path / "note").write_text("4\n")
    stays(kept(start, ENDS, 0, tmp_path / "note"), 4)
    (tmp_path / "note").unlink()
    assert kept(start, ENDS, 0, tmp_path / "note").wait(PATIENCE_S) == 0


@pytest.mark.parametrize("text", ["", "four"])
def test_a_note_that_cannot_be_read_is_a_note(start, tmp_path, text):
    (tmp_path / "note").write_text(text)
    process = kept(start, ENDS, 0, tmp_path / "note")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode != 0
    assert "a worker" not in out
    assert "StateError" in err


def test_where_no_note_can_be_written_it_stays_all_the_same(start, tmp_path):
    stays(kept(start, ENDS, 4, tmp_path / "no folder" / "note"), 4)


def test_it_is_alive_and_not_ready_and_a_metric_has_the_code(start, tmp_path):
    address = free_address()
    stays(kept(start, ENDS, 6, address=address), 6)
    until(lambda: page(address, "live")[0])
    assert page(address, "live") == (200, "ok\n")
    status, said = page(address, "ready")
    assert status == 503
    assert said.startswith("ingest ended with exit code 6")
    assert 'sfm_stopped_exit_code{command="ingest"} 6.0' in page(address, "metrics")[1]


def test_where_it_cannot_listen_it_stays_all_the_same(start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = kept(start, ENDS, 4, address=f"127.0.0.1:{taken.getsockname()[1]}")
        stays(process, 4)
        assert "cannot listen" in process.stderr.readline()
        assert process.poll() is None


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:-1", f"{'a' * 70}:9464"])
def test_an_address_that_is_none_does_not_end_it(start, address):
    """Whoever starts it again would start the worker again."""
    process = kept(start, ENDS, 4, address=address)
    stays(process, 4)
    assert "metrics.operator: " in process.stderr.readline()
    assert process.poll() is None


@pytest.mark.parametrize("code", [0, 4])
def test_a_signal_goes_on_to_the_worker_and_what_it_ends_with_is_the_end(start, tmp_path, code):
    """A worker that finishes its transaction ends with 0; also one that ends with 4 then is not stayed for."""
    process = kept(start, WAITS, code, tmp_path / "note")
    assert process.stdout.readline() == "a worker\n"
    process.terminate()
    assert process.wait(PATIENCE_S) == code
    assert (tmp_path / "note").exists() == (code == 4)


def test_a_configuration_that_must_not_run_stays_stopped(start, tmp_path):
    """The command itself, with options of its own and of the worker's."""
    note = tmp_path / "note"
    options = ["--operator", "", "--note", note, "--logs", "json"]
    command = ["ingest", tmp_path / "app.toml", "--operator", "127.0.0.1:1", "--no-publish"]
    process = start("-m", "sfm_stream.cli", "keep-stopped", *options, *command)
    assert "No such file" in process.stderr.readline()
    stays(process, 3)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 3


def test_no_command_is_wrong_usage(start):
    assert start("-m", "sfm_stream.cli", "keep-stopped").wait(PATIENCE_S) == 2
