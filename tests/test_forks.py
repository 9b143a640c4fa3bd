"""Forks of a loaded script: processes like any other, that owe each other nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.forks import Forks
from support.patience import until

SCRIPT = """
import os, signal, sys, time
from support.forks import arguments_of_this_fork

seen = []
what, *others = arguments_of_this_fork()
seen.append(what)
if what == "say":
    print(seen, others, os.getcwd(), os.environ.get("WORD"), sys.stdin.read() == "")
    print("to the other stream", file=sys.stderr)
elif what == "hash":
    print(hash("a text"), os.getpid())
elif what == "exit":
    sys.exit(int(others[0]))
elif what == "raise":
    raise LookupError("what is wrong")
elif what == "die":
    os.kill(os.getpid(), signal.SIGKILL)
elif what == "wait":
    print("waiting", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def forks(tmp_path: Path) -> Iterator[Forks]:
    (tmp_path / "script.py").write_text(SCRIPT)
    made = Forks(tmp_path / "script.py")
    yield made
    made.close()


def test_a_fork_has_its_own_arguments_environment_folder_and_streams(forks, tmp_path, monkeypatch):
    for word in ("one", "two", "three"):
        (tmp_path / word).mkdir()
        monkeypatch.chdir(tmp_path / word)
        monkeypatch.setenv("WORD", word)
        done = forks.run("say", word, 5)
        assert done.stdout == f"['say'] ['{word}', '5'] {tmp_path / word} {word} True\n"
        assert (done.returncode, done.stderr) == (0, "to the other stream\n")


def test_how_it_ended_is_told(forks):
    assert [forks.run("exit", code).returncode for code in (0, 3, 143)] == [0, 3, 143]
    assert forks.run("die").returncode == -signal.SIGKILL
    failed = forks.run("raise")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "LookupError: what is wrong" in failed.stderr


def test_those_that_follow_each_other_hash_differently_and_none_is_the_same_process(forks):
    hashes, pids = zip(*(forks.run("hash").stdout.split() for _ in range(4)), strict=True)
    assert hashes[0] == hashes[2] != hashes[1] == hashes[3]
    assert len({str(os.getpid()), *pids}) == 5


def test_several_run_side_by_side_and_are_stopped_and_killed(forks, tmp_path):
    logs = [tmp_path / f"log-{number}" for number in range(3)]
    running = [forks.start("wait", out=log, err=log) for log in logs]
    until(lambda: all(log.read_text() == "waiting\n" for log in logs))
    assert [process.poll() for process in running] == [None, None, None]
    running[1].send_signal(signal.SIGTERM)
    assert running[1].wait() == -signal.SIGTERM
    assert (running[0].poll(), running[2].poll()) == (None, None)
    for process in running:
        process.kill()
    assert [process.wait() for process in running] == [-signal.SIGKILL, -signal.SIGTERM, -signal.SIGKILL]
    assert [process.returncode for process in running] == [process.poll() for process in running]


def test_a_script_that_cannot_be_loaded_is_told(tmp_path):
    (tmp_path / "script.py").write_text("raise SystemExit(1)")
    forks = Forks(tmp_path / "script.py")
    with pytest.raises(AssertionError, match="nothing loaded"):
        forks.run("say")
    forks.close()
