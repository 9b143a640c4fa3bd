"""The roll-up as a worker of a consumer group: what it publishes is what one undisturbed roll-up makes of the topic."""

from __future__ import annotations

import signal
from collections import defaultdict

import pytest
from support.kafka_oracle import judge
from support.kafka_runs import START_MS, Run, Worker, closed_through, page_views, wait_until, workers

from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.pipeline.rollup.rollup import Rollup
from sfm_stream.wire.codec import RollupRecord, decode

pytestmark = pytest.mark.kafka
MINUTES = 100
HOUR_MS = 3_600_000


def expected(run: Run) -> dict[int, list[bytes]]:
    """Partition to the records of a roll-up that reads its sketches once, in this process."""
    rollups = {p: Rollup(run.id, p, calendar("UTC", 60_000, START_MS)) for p in range(run.partitions)}
    made: dict[int, list[bytes]] = defaultdict(list)
    for partition, offset, _, value, _, _ in run.read("sketches"):
        rollup = rollups[partition]
        rollup.add(offset, value or b"")
        while (step := rollup.step()) is not None:
            rollup.committed(step)
            made[partition] += [record.value for record in step.publish]
    return made


def published(run: Run, isolation: str = "read_committed") -> dict[int, list[bytes]]:
    """Partition to its final roll-ups; those that a deadline brought out early are left out."""
    found: dict[int, list[bytes]] = defaultdict(list)
    for partition, _, _, value, _, _ in run.read("rollups", isolation):
        record = decode(value or b"")
        assert isinstance(record, RollupRecord)
        if record.complete:
            found[partition].append(value or b"")
    return found


def test_kills_joins_and_restarts_change_no_byte_of_the_roll_ups(kafka, tmp_path):
    run = Run(kafka, tmp_path)
    run.produce(page_views(8000, MINUTES, pages=120))  # so many that their records take several transactions
    with workers() as started:
        started.append(Worker(run.config(), first=True))
        wait_until(
            lambda: (
                "begins at" in started[0].said()
                and len(ends := closed_through(run.read("sketches"))) == run.partitions
                and min(ends.values()) >= START_MS + 2 * HOUR_MS - 60_000 * 10
            ),
            120,
            started,
        )
        for count, point in enumerate(["first-send", "sent", "offsets", "committed", "committing"], 1):
            worker = Worker(run.config(), "rollup", point=point, count=1 + count % 2)
            started.append(worker)
            wait_until(lambda: not worker.running, 60, started)
            assert worker.process.returncode == -signal.SIGKILL, worker.said()
        started += [Worker(run.config(), "rollup"), Worker(run.config(), "rollup")]
        wait_until(
            lambda: (
                published(run).keys() == (made := expected(run)).keys()
                and all(len(published(run)[p]) >= len(made[p]) for p in made)
            ),
            120,
            started,
        )
        for worker in started:
            if worker.running:
                assert worker.stop() == 0, worker.said()
    judge(run).require()
    made, found = expected(run), published(run)
    assert sum(map(len, made.values())) >= 24
    assert {p: found[p] for p in made} == made
    # Also among what aborted transactions left: never two payloads of one revision.
    seen: dict[object, set[bytes]] = defaultdict(set)
    for payloads in published(run, "read_uncommitted").values():
        for payload in payloads:
            record = decode(payload)
            seen[record.partition, record.grain, record.window, record.key, record.revision].add(payload)
    assert all(len(each) == 1 for each in seen.values())
