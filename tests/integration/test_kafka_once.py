"""On a real broker: every window is released exactly once, whatever happens to the workers.

Each test ends with the oracle: the topics alone, read committed and uncommitted, must show each release once, the
markers without a gap, never two payloads of one release, and every event in its release, cell by cell.
"""

from __future__ import annotations

import copy
import json
import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata
from support.configs_by_kernel import configs_by_kernel
from support.kafka_oracle import judge, judge_spans
from support.kafka_runs import MINUTE_MS, START_MS, Event, Run, Worker, closed_through, page_views, wait_until, workers
from support.kafka_topics import produce, read_all
from support.span_windows import windows_of

from sfm_stream.wire.codec import CloseMarker, decode

pytestmark = pytest.mark.kafka
MINUTES = 20
END_MS = START_MS + MINUTES * MINUTE_MS
ABORTING = ["first-send", "sent", "offsets"]


@pytest.fixture
def run(kafka: str, tmp_path: Path) -> Run:
    return Run(kafka, tmp_path)


@pytest.fixture
def started() -> Iterator[list[Worker]]:
    with workers() as list_of_workers:
        yield list_of_workers


def released(run: Run, until_ms: int = END_MS, partitions: int | None = None, epoch: int = 1) -> bool:
    """Whether every partition is closed up to a time in the public topic."""
    try:
        ends = closed_through(run.read("sketches"), epoch)
    except LookupError:
        return False
    return len(ends) == (partitions or run.partitions) and min(ends.values()) >= until_ms


def begin(run: Run, started: list[Worker]) -> None:
    """Start the first worker of an epoch; others would refuse to count before it has fixed where counting begins."""
    started.append(Worker(run.config(), first=True))
    wait_until(lambda: "begins at" in started[-1].said(), 60, started, 0.1)


def finish(run: Run, started: list[Worker], **until: int) -> None:
    """Let what is running, or one more worker, bring the work to its end; stop it as an operator would."""
    if not any(worker.running for worker in started):
        started.append(Worker(run.config(), first=True))
    wait_until(lambda: released(run, **until), 120, started)
    for worker in started:
        if worker.running:
            assert worker.stop() == 0, worker.said()


def test_an_undisturbed_run_releases_everything_once(run, started):
    run.produce(page_views(6000, MINUTES))
    finish(run, started)
    assert judge(run).require().releases > 100


def test_kill_9_at_each_failpoint_changes_nothing(run, started):
    """Each worker dies in its third transaction, or at its fifth draw, at one point after another.

    Kernels take turns: each continues what the other one began.
    """
    run.produce(page_views(20_000, MINUTES, pages=100))
    for number, point in enumerate(ABORTING * 5 + ["draw", "committing", "committed"]):
        config = configs_by_kernel(run.config())[number % 2]
        worker = Worker(config, point=point, count=5 if point == "draw" else 3, first=number == 0)
        started.append(worker)
        wait_until(lambda: not worker.running, 60, started)
        assert worker.process.returncode == -signal.SIGKILL, worker.said()
    finish(run, started)
    findings = judge(run).require()
    print(f"\n{len(started) - 1} deaths, {findings.aborted} aborted transactions seen")
    assert findings.aborted >= 14


def test_without_the_outbox_the_same_deaths_show_a_second_draw(run, started):
    """A test of the tests above: where draws go straight to the public topic, the oracle must object."""
    run.produce(page_views(4000, MINUTES, pages=30))
    for number, point in enumerate(ABORTING):
        started.append(Worker(run.config(), "bare", point=point, count=2, first=number == 0))
        wait_until(lambda: not started[-1].running, 60, started)
    started.append(Worker(run.config(), "bare"))
    wait_until(lambda: released(run), 60, started)
    assert started[-1].stop() == 0
    assert any("payloads" in problem for problem in judge(run).problems)


def test_kill_9_at_random_moments_of_three_workers_changes_nothing(run, started):
    rng = random.Random(4)
    run.produce(page_views(6000, MINUTES))
    begin(run, started)
    started += [Worker(run.config()) for _ in range(2)]
    for _ in range(8):
        time.sleep(rng.uniform(0.5, 2.5))
        rng.choice([worker for worker in started if worker.running]).kill()
        started.append(Worker(run.config()))
    finish(run, started)
    judge(run).require()


@pytest.mark.parametrize("point", ["stop-sent", "stop-offsets"])
def test_a_worker_that_is_stopped_past_its_session_cannot_commit(run, started, point):
    """It wakes up with a transaction in hand, after another one took its partitions over and released them."""
    run.produce(page_views(4000, MINUTES))
    frozen = Worker(run.config(), point=point, count=4, first=True)
    started.append(frozen)
    wait_until(lambda: frozen.stopped, 60, started, 0.05)
    started.append(Worker(run.config()))
    wait_until(lambda: released(run), 120, started)
    refused = frozen.said().count(" failed: ")
    frozen.signal(signal.SIGCONT)
    wait_until(lambda: frozen.said().count(" failed: ") > refused, 60, started)
    finish(run, started)
    judge(run).require()


def test_joins_and_leaves(run, started):
    run.produce(page_views(6000, MINUTES))
    begin(run, started)
    for step in range(4):
        time.sleep(1.5)
        started.append(Worker(run.config()))
        if step % 2:
            assert started[step // 2].stop() == 0
    finish(run, started)
    judge(run).require()


def group_of(run: Run, role: str = "ingest.1") -> str:
    return f"{run.id}.{role}"


@pytest.mark.parametrize("how", ["deleted", "moved back", "moved ahead"])
def test_group_offsets_that_are_lost_or_changed_are_restored(run, started, how):
    """Of both groups, in the middle of the work; the warning says what was done."""
    run.produce(page_views(6000, MINUTES, pages=30))
    started.append(Worker(run.config(), first=True, point="committed", count=12))
    wait_until(lambda: not started[0].running, 60, started)
    places = [TopicPartition(run.topic, number) for number in range(run.partitions)]
    with KafkaAdminClient(bootstrap_servers=run.bootstrap) as admin:
        for role, topic in (("ingest.1", run.topic), ("publish", f"{run.id}.outbox")):
            wait_until(lambda: not admin.describe_groups([group_of(run, role)])[group_of(run, role)]["members"], 30)
            if how == "deleted":
                admin.delete_groups([group_of(run, role)])
            else:
                offset = 0 if how == "moved back" else 10_000
                places = [TopicPartition(topic, number) for number in range(run.partitions)]
                admin.alter_group_offsets(group_of(run, role), {p: OffsetAndMetadata(offset, "", -1) for p in places})
    finish(run, started)
    judge(run).require()
    assert "which the ledger holds" in started[-1].said()


def test_an_input_transaction_that_is_open_holds_its_windows_open(run, started):
    events = page_views(300, 2, pages=3)
    with KafkaProducer(
        bootstrap_servers=run.bootstrap, transactional_id=run.id, transaction_timeout_ms=60_000
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for event in events:
            place = run.partition(event.page)
            producer.send(run.topic, event.value, event.page.encode(), partition=place, timestamp_ms=event.arrival_ms)
            run.events[place].append(event)
        producer.flush()
        busy = {run.partition(event.page) for event in events}
        begin(run, started)
        time.sleep(6)
        ends = closed_through(run.read("sketches"))
        assert not busy & ends.keys(), "a window was closed over an open transaction"
        producer.commit_transaction()
    finish(run, started)
    judge(run).require()


def test_aborted_input_is_not_counted(run, started):
    run.produce(page_views(600, MINUTES, seed=1))
    run.produce(page_views(600, MINUTES, users=4000, seed=2), abort=True)
    finish(run, started)
    judge(run).require()


def test_a_close_larger_than_one_transaction(run, started):
    """900 keys in one window, and a death in the middle of its close, again and again."""
    run.produce(page_views(4000, 1, pages=900))
    for number, point in enumerate(["committed", "sent", "offsets", "draw"]):
        worker = Worker(run.config(), "ingest", point=point, count=300 if point == "draw" else 2, first=number == 0)
        started.append(worker)
        wait_until(lambda: not worker.running or released(run), 60, started)
    finish(run, started, until_ms=START_MS + MINUTE_MS)
    judge(run).require()


def test_dropped_records_are_pointed_at_without_their_content(kafka, tmp_path, started):
    """Late, broken and misplaced records each get a pointer; the others are counted as ever."""
    run = Run(kafka, tmp_path, settings={"kafka": "dead_letters = true"})
    run.produce(page_views(600, MINUTES))
    wrong = next(p for p in range(run.partitions) if p != run.partition("p1"))
    late = Event("p1", "secret-user", START_MS, END_MS)
    bad = [(b"p1", late.value, late.arrival_ms, run.partition("p1")), (b"x", b"{broken", END_MS, 0)]
    bad.append((b"p1", Event("p1", "secret-user", END_MS, END_MS).value, END_MS, wrong))
    places = produce(run.bootstrap, run.topic, bad)
    finish(run, started, until_ms=END_MS + MINUTE_MS)
    judge(run).require()
    letters = [json.loads(value) for _, _, _, value, _, _ in run.read("dead-letters")]
    assert sorted((it["partition"], it["offset"]) for it in letters) == sorted(places)
    assert sorted(it["reason"] for it in letters) == ["key_misplaced", "late", "malformed"]
    assert all(it.keys() == {"topic", "partition", "offset", "reason"} for it in letters)


def span_closed(run: Run, span: str, after_ms: int) -> bool:
    """Whether every partition has closed a window of a span that ends later."""
    markers = [decode(value or b"") for _, _, key, value, _, _ in run.read("sketches") if not key]
    closed = {m.partition for m in markers if isinstance(m, CloseMarker) and m.span == span and m.through_ms > after_ms}
    return len(closed) == run.partitions


def test_live_events_under_the_time_of_the_broker(kafka, tmp_path, started):
    """LogAppendTime, and the record's time as event time: what counts is a pure function of the log.

    A second pipeline over the same topic releases three spans.
    """
    start_ms = int(time.time()) // 5 * 5000
    settings = {
        "topic_config": {"message.timestamp.type": "LogAppendTime"},
        "timestamps": "log_append_time",
        "time": "",
        "size": "5s",
        "grace": "1s",
        "start": datetime.fromtimestamp(start_ms / 1000, UTC).isoformat(),
    }
    run = Run(kafka, tmp_path, settings=settings)
    spans = copy.copy(run)
    spans.id = f"{run.id}-spans"
    tables = "".join(f'[[spans]]\nsize = "{size}"\nepsilon = 1\ncount_share = 0.3\n' for size in ("10s", "15s"))
    spans.settings = settings | {"topic": run.topic, "spans": tables}
    started.append(Worker([run.config(), spans.config("spans.toml")], first=True))
    for batch in range(12):
        events = [Event(f"p{n % 5}", f"u{batch * 20 + n}", 0, 0) for n in range(40)]
        run.produce(events)
        time.sleep(1)
    run.events.clear()
    for partition, _, key, value, stamp_ms, _ in read_all(run.bootstrap, run.topic):
        run.events[partition].append(Event((key or b"").decode(), json.loads(value)["user"], stamp_ms, stamp_ms))
    last_ms = max(event.arrival_ms for events in run.events.values() for event in events)
    windows = {size: windows_of(size, "UTC", start_ms, last_ms + 60_000) for size in ("5s", "10s", "15s")}
    wait_until(lambda: span_closed(spans, "15s", last_ms - 15_000), 120, started)
    finish(run, started, until_ms=last_ms // 5000 * 5000 + 5000)
    assert judge_spans(spans, windows, 1000, {}).require().releases >= 15
    assert judge(run, size_ms=5000, start_ms=start_ms).require().releases >= 10
    assert {decode(value).unit for _, _, key, value, _, _ in run.read("sketches") if key} == {"removed"}


def test_empty_partitions_idle_and_close(run, started):
    run.produce([Event("p1", "u1", START_MS + 5, START_MS + 5)])
    finish(run, started, until_ms=START_MS + 100 * MINUTE_MS)
    assert judge(run).require().releases == 1


def test_added_partitions_end_the_epoch_and_the_next_one_goes_on(kafka, tmp_path, started):
    run = Run(kafka, tmp_path, settings={"size": "10s", "grace": "2s"})
    run.produce(page_views(2000, MINUTES, behind_ms=0))
    started.append(Worker(run.config(), first=True))
    wait_until(lambda: released(run), 60, started)
    with KafkaAdminClient(bootstrap_servers=run.bootstrap) as admin:
        admin.create_partitions({run.topic: run.partitions + 2})
        wait_until(lambda: not started[0].running, 60, started)
        assert started[0].process.returncode != 0
        assert "raise pipeline.epoch" in started[0].said().lower()
        own = {f"{run.id}.{name}": run.partitions + 2 for name in ("outbox", "ledger", "sketches", "rollups")}
        admin.create_partitions(own)
    judge(run, size_ms=10_000).require()

    # The new epoch begins at a later border, with the keys where the producers put them now.
    begin_ms = max(closed_through(run.read("sketches")).values())
    second = run.config("second.toml", epoch=2, start=datetime.fromtimestamp(begin_ms / 1000, UTC).isoformat())
    run.partitions += 2
    run.events.clear()
    shift = begin_ms - START_MS
    run.produce(
        replace(e, at_ms=e.at_ms + shift, arrival_ms=e.arrival_ms + shift) for e in page_views(100, 1, behind_ms=0)[:30]
    )
    started.append(Worker(second, first=True))
    wait_until(lambda: released(run, begin_ms + 20_000, epoch=2), 120, started)
    assert started[-1].stop() == 0
    assert judge(run, size_ms=10_000, epoch=2, start_ms=begin_ms).require().releases > 5


def test_a_backfill_of_windows_older_than_any_retention(kafka, tmp_path, started):
    """Two years back, in windows of an hour; the released windows stay in their topic."""
    old_ms = (START_MS - 730 * 24 * 3_600_000) // 3_600_000 * 3_600_000
    settings = {
        "topic_config": {"retention.ms": -1},
        "start": datetime.fromtimestamp(old_ms / 1000, UTC).isoformat(),
        "size": "1h",
        "limits": "max_gap_windows = 100000",
    }
    run = Run(kafka, tmp_path, partitions=1, settings=settings)
    shift = old_ms - START_MS
    run.produce(replace(e, at_ms=e.at_ms + shift, arrival_ms=e.arrival_ms + shift) for e in page_views(2000, 180))
    finish(run, started, until_ms=old_ms + 3 * 3_600_000)
    assert judge(run, size_ms=3_600_000, start_ms=old_ms).require().releases > 20


def test_a_stop_signal_ends_it_and_publishes_nothing_partial(run, started):
    run.produce(page_views(6000, MINUTES, pages=30))
    begin(run, started)
    time.sleep(float(os.environ.get("SFM_STOP_AFTER_S", "2")))
    assert started[0].stop() == 0
    finish(run, started)
    judge(run).require()
