"""Drives the ingest worker and the roll-up worker of `run` until the input has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from sfm_stream.clock import monotonic_s, now_ms
from sfm_stream.composition.files import FileWorkers
from sfm_stream.composition.stop_signal import Stop
from sfm_stream.workers.ingest_report import IngestReport
from sfm_stream.workers.partition_worker import CHECKPOINT_S


@dataclass(frozen=True, slots=True)
class RunReport:
    """What one `run` did. stopped: the signal that ended it, 0 where it reached the end of its input."""

    ingest: IngestReport
    rollups: int
    seen: Counter[str]
    conflicts: tuple[str, ...]
    stopped: int


def run_to_end(
    work: FileWorkers, deadline_ms: int, stopping: Stop, progress: Callable[[], None] = lambda: None
) -> RunReport:
    """Read the input to its end, publish every window that is due, roll up, and say what was done.

    deadline_ms: hours and days that ended this long ago by the clock on the wall are published even if not final.
    """
    due = monotonic_s() + CHECKPOINT_S
    released = 0
    while not work.ingest.ended and not stopping():
        work.ingest.tick(stopping)
        if work.ingest.report.releases != released:
            released = work.ingest.report.releases
            work.rollup.catch_up(stopping)
        if monotonic_s() >= due:
            work.ingest.checkpoint()
            due = monotonic_s() + CHECKPOINT_S
        progress()
    work.ingest.checkpoint()
    work.rollup.catch_up(stopping, expire_before_ms=now_ms() - deadline_ms)
    counts: Counter[str] = Counter()
    conflicts: list[str] = []
    for seen in work.rollup.seen:
        counts.update(
            merged=seen.merged, duplicate=seen.duplicate, conflict=seen.conflict, already_final=seen.already_final
        )
        conflicts.extend(seen.conflicts)
    return RunReport(work.ingest.report, work.rollup.published, counts, tuple(conflicts), stopping.signal)
