"""One run of one program: started, watched until it has done its work, stopped, and what the kernel says it used."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from benchmarks.peers.site import PROGRAMS, Site, TopicEnds

LOOK_S, QUIET_S, STALL_S, STOP_S = 0.1, 1.0, 300.0, 120.0


class RunFailedError(Exception):
    """A run that did not do its work; the message has the end of its log."""


@dataclass
class Progress:
    """What a watch found: how much is done, since when, and whether that is all."""

    done: int = 0
    at_s: float = field(default_factory=time.monotonic)

    def saw(self, done: int) -> None:
        if done > self.done:
            self.done, self.at_s = done, time.monotonic()

    @property
    def quiet_s(self) -> float:
        return time.monotonic() - self.at_s


class Watch(Protocol):
    """Notes progress; True once all is done and the program can be stopped."""

    def __call__(self, progress: Progress) -> bool: ...
    def close(self) -> None: ...


class Answers:
    """So many records are in a topic, and none comes any more. Markers of transactions count as records."""

    def __init__(self, site: Site, topic: str, wanted: int) -> None:
        self._ends, self._wanted = TopicEnds(site.bootstrap, topic), wanted

    def __call__(self, progress: Progress) -> bool:
        progress.saw(self._ends())
        return progress.done >= self._wanted and progress.quiet_s > QUIET_S

    def close(self) -> None:
        self._ends.close()


class Reads:
    """The program's own metrics say that it has read so many events. last: what they said."""

    def __init__(self, port: int, wanted: int) -> None:
        self._port, self._wanted = port, wanted
        self.last: dict[str, float] = {}

    def __call__(self, progress: Progress) -> bool:
        self.last = metrics(self._port) or self.last
        progress.saw(int(self.last.get("sfm_events_read_total", 0)))
        return progress.done >= self._wanted

    def close(self) -> None: ...


def metrics(port: int) -> dict[str, float]:
    """Each metric of a worker, summed over its labels; none before it listens."""
    try:
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=STALL_S).read().decode()
    except OSError:
        return {}
    found: dict[str, float] = {}
    for name, number in re.findall(r"^(\w+)(?:\{.*\})? (\S+)$", text, re.M):
        found[name] = found.get(name, 0.0) + float(number)
    return found


@dataclass(frozen=True)
class Used:
    """CPU and memory of a whole life. wall_s: from the start to the last of the work. said: what was printed."""

    cpu_s: float
    system_s: float
    rss_mb: float
    wall_s: float
    said: str


def run(site: Site, command: Sequence[str], env: Mapping[str, str], watch: Watch | None, log: Path) -> Used:
    """Run to its own end, or until the watch says that all is done. Raises RunFailedError."""
    core = "-" if site.core is None else str(site.core)
    launch = [sys.executable, "-I", "-S", str(PROGRAMS / "launch.py"), str(log), core, *command]
    begun, progress = time.monotonic(), Progress()
    process = subprocess.Popen(
        launch, env=os.environ | env, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=log.parent
    )
    try:
        while process.poll() is None:
            time.sleep(LOOK_S)
            if watch is not None and watch(progress):
                process.send_signal(signal.SIGTERM)
                process.wait(STOP_S)
            elif watch is not None and progress.quiet_s > STALL_S:
                raise RunFailedError(f"no progress for {STALL_S:.0f} s at {progress.done:,}: {_end_of(log)}")
        out, _ = process.communicate()
    except subprocess.TimeoutExpired:
        raise RunFailedError(f"it did not stop within {STOP_S:.0f} s: {_end_of(log)}") from None
    finally:
        if watch is not None:
            watch.close()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    used = json.loads(out)
    stopped = watch is not None and progress.done > 0
    # A program that was told to stop may say so by its code; Java says 143, sfm-stream 143 as well, others the signal.
    if used["code"] not in ((0, -signal.SIGTERM, 128 + signal.SIGTERM) if stopped else (0,)):
        raise RunFailedError(f"exit code {used['code']}: {_end_of(log)}")
    ended = progress.at_s if stopped else time.monotonic()
    cpu_s = used["user"] + used["system"]
    return Used(cpu_s, used["system"], used["rss_kib"] / 1024, ended - begun, log.read_text("utf-8", "replace"))


def _end_of(log: Path) -> str:
    return log.read_text("utf-8", "replace")[-1500:] if log.exists() else "no log"
