"""On a real broker: quarters of an hour, hours and days of a zone, each released from raw exactly once.

The zone is half an hour off the hours of UTC. Days on which clocks change: tests/properties/test_kafka_model.py.
"""

from __future__ import annotations

import copy
import random
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.kafka_oracle import judge_spans
from support.kafka_runs import Event, Run, Worker, wait_until, workers
from support.span_windows import DAY_MS, HOUR_MS, MINUTE_MS, windows_of

from sfm_stream.estimation.estimate import estimate
from sfm_stream.sketch.agreement import SketchKind
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord, decode

pytestmark = pytest.mark.kafka
ZONE, GRACE_MS = "Asia/Kolkata", 30_000
SPANS, BUCKETS = ("15m", "hour", "day"), {"hour": 32}
NOW_MS = int(time.time() * 1000)
DAY = max(end for end in windows_of("day", ZONE, NOW_MS - 4 * DAY_MS, NOW_MS - 2 * HOUR_MS))
"""The last day of the zone that ended two hours ago or earlier. It begins and ends on a half hour of UTC."""
BEGIN_MS = DAY[0] - 30 * MINUTE_MS
WINDOWS = {span: windows_of(span, ZONE, BEGIN_MS, NOW_MS + DAY_MS) for span in SPANS}
ZONE_TABLE = f'[rollup]\nzone = "{ZONE}"\n'
SPAN_TABLES = """
[[spans]]
size = "hour"
epsilon = 1
count_share = 0.2
buckets = 32
[[spans]]
size = "day"
epsilon = 1
count_share = 0.5
"""
SETTINGS = {
    "size": "15m",
    "start": datetime.fromtimestamp(BEGIN_MS / 1000, UTC).isoformat(),
    "spans": ZONE_TABLE + SPAN_TABLES,
}
POINTS = ["sent", "first-send", "draw", "offsets", "committing", "sent", "committed"]


@pytest.fixture
def started() -> Iterator[list[Worker]]:
    with workers() as list_of_workers:
        yield list_of_workers


def events(count: int, pages: int, seed: int = 1) -> list[Event]:
    """In order of arrival: one at the first minute of the day, the others around the end of it.

    Some come too late for their quarter, and some of these too late for their hour: they count for the day.
    """
    rng = random.Random(seed)
    found = [Event("p0", "early", DAY[0] + 1, DAY[0] + 1)]
    for number in range(count):
        arrival = DAY[1] - 2 * HOUR_MS + number * (2 * HOUR_MS + 10 * MINUTE_MS) // count
        behind_ms = rng.choice([0, 0, 0, 20_000, 25 * MINUTE_MS, 100 * MINUTE_MS])
        found.append(Event(f"p{rng.randrange(pages)}", f"u{rng.randrange(400)}", arrival - behind_ms, arrival))
    return found


def closed(run: Run) -> bool:
    """Whether every partition has closed the day, and the hour that the last events are in."""
    through: dict[tuple[str | None, int], int] = {}
    for _, _, _, value, _, _ in run.read("sketches"):
        record = decode(value or b"")
        if isinstance(record, CloseMarker):
            through[record.span, record.partition] = record.through_ms
    hours = [through.get(("hour", number), 0) for number in range(run.partitions)]
    days = [through.get(("day", number), 0) for number in range(run.partitions)]
    return min(days) >= DAY[1] and min(hours) > DAY[1]


def public_records(run: Run) -> int:
    """How many records are public so far."""
    try:
        return len(run.read("sketches"))
    except LookupError:
        return 0


def stop(started: list[Worker]) -> None:
    for worker in started:
        if worker.running:
            assert worker.stop() == 0, worker.said()


def test_kill_9_at_each_failpoint_changes_nothing_of_any_span(
    kafka: str, tmp_path: Path, started: list[Worker]
) -> None:
    """The day alone takes many transactions: 250 keys, a score of them in each."""
    run = Run(kafka, tmp_path, partitions=2, settings=dict(SETTINGS))
    run.produce(events(1500, 250))
    for number, point in enumerate(POINTS):
        worker = Worker(run.config(), point=point, count=120 if point == "draw" else 12, first=number == 0)
        started.append(worker)
        wait_until(lambda worker=worker: not worker.running, 60, started)  # type: ignore[misc]
        assert worker.process.returncode == -signal.SIGKILL, worker.said()
    started.append(Worker(run.config(), "ingest", "publish", "rollup"))
    wait_until(lambda: closed(run), 120, started)
    wait_until(lambda: rolled_up(run), 120, started)
    stop(started)
    findings = judge_spans(run, WINDOWS, GRACE_MS, BUCKETS).require()
    assert findings.releases > 1000
    assert findings.aborted >= 4
    require_passed_on(run)


def days_released(run: Run) -> list[Release]:
    records = [decode(value or b"") for _, _, _, value, _, _ in run.read("sketches")]
    return [r for r in records if isinstance(r, Release) and (r.span, r.window.end_ms) == ("day", DAY[1])]


def rolled_up(run: Run) -> bool:
    """Whether every release of the day is a roll-up."""
    records = [decode(value or b"") for _, _, _, value, _, _ in run.read("rollups")]
    days = [r for r in records if isinstance(r, RollupRecord) and r.grain == "day" and r.window.end_ms == DAY[1]]
    return len(days) >= len(days_released(run))


def require_passed_on(run: Run) -> None:
    """Each release of the day is one record, with its own estimate."""
    released = {(r.partition, r.key): r for r in days_released(run)}
    assert len(released) > 200
    seen = set()
    for _, _, _, value, _, _ in run.read("rollups"):
        record = decode(value or b"")
        assert isinstance(record, RollupRecord)
        assert (record.origin, record.windows, record.released) == ("raw", 1, 1)
        assert {"quarter": "15m", "hour": "hour", "day": "day"}[record.grain] == record.span
        if (record.grain, record.window.end_ms) == ("day", DAY[1]):
            place = record.partition, record.key
            seen.add(place)
            assert record.value == pytest.approx(estimate(released[place].sketch).value, rel=1e-5)
            assert record.of_releases == SketchKind.of(released[place].sketch)
    assert seen == released.keys()


NEWCOMER_MS = DAY[0] + 12 * HOUR_MS


def counted(page: str, span: str, start_ms: int) -> bool:
    """Whether a declared key takes part in a window: p3 in those that begin at noon of the day or later."""
    return page in ("p1", "p2", "silent") or (page == "p3" and start_ms >= NEWCOMER_MS)


def test_declared_and_selected_keys_of_three_partitions_across_a_restart(
    kafka: str, tmp_path: Path, started: list[Worker]
) -> None:
    """Two pipelines over one topic. The first worker stops when it has released some quarters, the next goes on."""
    run = Run(kafka, tmp_path, settings=dict(SETTINGS))
    run.produce(events(1500, 5))
    since = datetime.fromtimestamp(NEWCOMER_MS / 1000, UTC).isoformat()
    keys = {
        "declared": (
            'epsilon = 2\nkeys = "declared"\ndeclared = ["p1", "p2", "silent"]',
            f'[[privacy.declared_from]]\nsince = {since}\nkeys = ["p3"]\n',
        ),
        "selected": ('epsilon = 2\nkeys = "selected"\nepsilon_selection = 4\ndelta_selection = 1e-6', ""),
    }
    runs = {}
    for name, (privacy, table) in keys.items():
        runs[name] = other = copy.copy(run)
        other.id = f"{run.id}-{name}"
        other.settings = {
            **run.settings,
            "topic": run.topic,
            "privacy": privacy,
            "spans": ZONE_TABLE + table + SPAN_TABLES,
        }
    configs = [other.config(f"{name}.toml") for name, other in runs.items()]
    started.append(Worker(configs, first=True))
    wait_until(lambda: all(public_records(each) > 50 for each in runs.values()), 120, started)
    assert started[0].stop() == 0, started[0].said()
    started.append(Worker(configs))
    wait_until(lambda: all(closed(each) for each in runs.values()), 120, started)
    stop(started)
    declared = judge_spans(runs["declared"], WINDOWS, GRACE_MS, BUCKETS, counted).require()
    selected = judge_spans(runs["selected"], WINDOWS, GRACE_MS, BUCKETS, withheld=True).require()
    require_every_declared_key(runs["declared"])
    assert declared.releases > 3 * 96
    assert {r.span for r in map(decode, (v or b"" for _, _, _, v, _, _ in runs["selected"].read("sketches")))} == set(
        SPANS
    )
    assert 10 < selected.releases < declared.releases
    assert len(days_released(runs["selected"])) == 5, "every page has hundreds of items in the day"


def require_every_declared_key(run: Run) -> None:
    """In each closed window the partition of a declared key released it, empty or not."""
    records = [decode(value or b"") for _, _, _, value, _, _ in run.read("sketches")]
    ends: dict[tuple[str, int], int] = {}
    for record in records:
        if isinstance(record, CloseMarker):
            ends[record.span or "", record.partition] = record.through_ms
    names = {bytes([0x91, 0xA0 | len(page)]) + page.encode(): page for page in ("p1", "p2", "p3", "silent")}
    found = {
        (r.span, r.window.start_ms, names[r.key])
        for r in records
        if isinstance(r, Release) and r.window.end_ms <= ends.get((r.span or "", r.partition), 0)
    }
    wanted = {
        (span, start, page)
        for span, each in WINDOWS.items()
        for start, end in each
        for page in ("p1", "p2", "p3", "silent")
        if counted(page, span, start) and end <= ends.get((span, run.partition(page)), 0)
    }
    assert found == wanted
