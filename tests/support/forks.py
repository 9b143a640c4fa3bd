"""Processes of one script that do not pay for loading it: forks of one that has loaded it.

The script calls `arguments_of_this_fork` where it would read sys.argv, and from there on is a process like any other:
it has its own memory, it can be stopped and killed, and it ends by itself.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import count, cycle
from pathlib import Path
from typing import Any

from support.patience import PATIENCE_S

SERVE = "--fork"
HASH_SEEDS = ("1", "2")
"""Two processes that follow each other must not owe it to equal hashes of texts that they agree on an order."""
_LOOK_S = 0.005


def arguments_of_this_fork() -> list[str]:
    """Those of the command line; called with --fork alone, it returns in a new process for each line of its input.

    A line is a JSON object: arguments, env, cwd, and the paths out and err (to write to) and ended (to be made once the
    new process has, with its exit code). It is answered with the id of the new process.
    """
    if sys.argv[1:] != [SERVE]:
        return sys.argv[1:]
    between_ids: set[int] = set()
    for line in sys.stdin:
        wanted = json.loads(line)
        between_ids = {each for each in between_ids if not os.waitpid(each, os.WNOHANG)[0]}
        told, tell = os.pipe()
        if (between := os.fork()) == 0:
            os.close(told)
            if (child := os.fork()) == 0:
                os.close(tell)
                _become(wanted)
                return list(wanted["arguments"])
            os.write(tell, b"%d\n" % child)
            os.close(tell)
            part = Path(wanted["ended"] + ".part")
            part.write_text(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
            part.rename(wanted["ended"])
            os._exit(0)
        between_ids.add(between)
        os.close(tell)
        with open(told) as answer:
            print(answer.read().strip(), flush=True)
    sys.exit()


def _become(wanted: Mapping[str, Any]) -> None:
    """Make this process what was asked for."""
    writing = os.O_WRONLY | os.O_APPEND
    streams = ((os.devnull, os.O_RDONLY), (wanted["out"], writing), (wanted["err"], writing))
    for descriptor, (path, flags) in enumerate(streams):
        opened = os.open(path, flags)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(wanted["env"])
    os.chdir(wanted["cwd"])


class ForkedProcess:
    """A running fork, asked as a subprocess.Popen is."""

    def __init__(self, pid: int, ended: Path) -> None:
        self.pid, self._ended = pid, ended
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and self._ended.exists():
            self.returncode = int(self._ended.read_text())
        return self.returncode

    def wait(self, timeout: float = PATIENCE_S) -> int:
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("a fork", timeout)
            time.sleep(_LOOK_S)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Forks:
    """Runs of one script. What has loaded it ends with this process, or with close()."""

    def __init__(self, script: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="forks-")
        self._numbers = count()
        path = {"PYTHONPATH": str(Path(__file__).parents[1])}
        self._loaded = [
            subprocess.Popen(
                [sys.executable, str(script), SERVE],
                env=os.environ | path | {"PYTHONHASHSEED": seed},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for seed in HASH_SEEDS
        ]
        self._turns = cycle(self._loaded)

    def close(self) -> None:
        for loaded in self._loaded:
            assert loaded.stdin is not None
            assert loaded.stdout is not None
            with suppress(BrokenPipeError):
                loaded.stdin.close()
            loaded.wait(PATIENCE_S)
            loaded.stdout.close()
        self._folder.cleanup()

    def start(self, *arguments: object, out: Path, err: Path) -> ForkedProcess:
        """As subprocess.Popen of the script, in the folder and with the environment of this process.

        out, err: to which it writes; they may be the same.
        """
        loaded, ended = next(self._turns), Path(self._folder.name, str(next(self._numbers)))
        assert loaded.stdin is not None
        assert loaded.stdout is not None
        for path in (out, err):
            path.write_bytes(b"")  # there at once, for whoever looks at what it says
        here = {"env": dict(os.environ), "cwd": str(Path.cwd())}
        paths = {"out": str(out), "err": str(err), "ended": str(ended)}
        with suppress(BrokenPipeError):  # it has ended, which its answer shows
            print(json.dumps({"arguments": [*map(str, arguments)]} | here | paths), file=loaded.stdin, flush=True)
        # It writes one line for each of ours, so nothing that it wrote is in the buffer already.
        in_time = select.select([loaded.stdout], [], [], PATIENCE_S)[0]
        line = loaded.stdout.readline() if in_time else ""
        assert line, "there is nothing loaded that could be forked"
        return ForkedProcess(int(line), ended)

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """As subprocess.run."""
        out, err = (Path(self._folder.name, name) for name in ("out", "err"))
        process = self.start(*arguments, out=out, err=err)
        try:
            code = process.wait()
        finally:
            process.kill()
        return subprocess.CompletedProcess([*map(str, arguments)], code, out.read_text("utf-8"), err.read_text("utf-8"))
