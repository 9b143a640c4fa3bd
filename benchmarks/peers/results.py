"""What was measured, one line of JSON for each run, in a file for each commit: a run that is there is not run again."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.peers.site import ROOT

MEASURED = ["sfm_stream", "native", "benchmarks/peers", "pyproject.toml"]
"""What a result depends on."""


@dataclass(frozen=True)
class Result:
    """One run. count: events or releases of the data set. rate: what a program measured itself, 0 where it did not."""

    row: str
    size: str
    repetition: int
    count: int
    cpu_s: float
    system_s: float
    rss_mb: float
    wall_s: float
    rate: float
    right: bool
    said: str
    at: str


class Results:
    """Those of one state of the code and one scale."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.all = [Result(**json.loads(line)) for line in lines]

    def has(self, row: str, size: str, repetition: int) -> bool:
        """A run that answered wrongly is none."""
        return any((r.row, r.size, r.repetition) == (row, size, repetition) and r.right for r in self.all)

    def add(self, result: Result) -> None:
        """In place of one of the same run, if there is one."""
        mine = (result.row, result.size, result.repetition)
        self.all = [r for r in self.all if (r.row, r.size, r.repetition) != mine] + [result]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(json.dumps(asdict(r)) + "\n" for r in self.all))


def code_state() -> str:
    """The commit, and a digest of what was changed since; "unknown" outside of a checkout."""
    commit = _git("rev-parse", "--short=12", "HEAD")
    if not commit:
        return "unknown"
    changes = _git("diff", "HEAD", "--", *MEASURED) + _git("ls-files", "-o", "--exclude-standard", "--", *MEASURED)
    return commit + (f"-changed-{hashlib.sha256(changes.encode()).hexdigest()[:8]}" if changes else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)  # noqa: S607 - as the shell finds it
    return done.stdout.strip() if done.returncode == 0 else ""
