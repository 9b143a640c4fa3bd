"""On a real broker: the commands as an operator runs them, and the errors that must stop a worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from kafka import KafkaAdminClient, TopicPartition
from reference import presto_reader as oracle
from support.kafka_oracle import judge
from support.kafka_runs import (
    MINUTE_MS,
    START_MS,
    Run,
    Worker,
    closed_through,
    expected_cells,
    page_views,
    wait_until,
    workers,
)
from support.kafka_topics import make_topic, read_all
from support.patience import PATIENCE_S
from support.summed_rollups import summed

from sfm_stream.wire.codec import Release, RollupRecord, decode
from sfm_stream.wire.keys import decode_key

pytestmark = pytest.mark.kafka
MINUTES = 10
OWN = ("outbox", "ledger", "sketches", "rollups")


class Command:
    """A command that has ended: its exit code and what it said."""

    def __init__(self, *call: str, timeout_s: float = PATIENCE_S) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "sfm_stream.cli", *call],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=os.environ | {"COLUMNS": "200"},
        )
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        assert "Traceback" not in self.err

    @property
    def error(self) -> str:
        """Its one line of an error."""
        [line] = [line for line in self.err.splitlines() if line.startswith("error: ")]
        return line

    def documents(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.out.splitlines()]


def ingest(config: Path, *options: str, **more: float) -> Command:
    return Command("ingest", str(config), "--operator", "", *options, **more)


@pytest.fixture
def run(kafka: str, tmp_path: Path) -> Run:
    return Run(kafka, tmp_path)


@pytest.fixture(scope="module")
def done(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A pipeline that has counted, published and rolled up its first hour."""
    made = Run(kafka, tmp_path_factory.mktemp("done"))
    made.produce(page_views(3000, MINUTES))
    with workers() as started:
        started.append(Worker(made.config(), first=True))
        wait_until(lambda: released(made), 90, started)
        started.append(Worker(made.config(), "rollup"))
        wait_until(lambda: hours(made), 90, started)
        for worker in started:
            assert worker.stop() == 0
    return made


def released(run: Run, until_ms: int = START_MS + 60 * MINUTE_MS) -> bool:
    try:
        ends = closed_through(run.read("sketches"))
    except LookupError:
        return False
    return len(ends) == run.partitions and min(ends.values()) >= until_ms


def hours(run: Run) -> set[bytes]:
    """Keys of which the whole first hour is there."""
    found = [decode(value or b"") for _, _, _, value, _, _ in run.read("rollups")]
    keys = {r.key for r in found if isinstance(r, RollupRecord) and r.grain == "hour" and r.window.start_ms == START_MS}
    return keys if len(keys) == 8 else set()


def expected(run: Run) -> set[tuple[str, int]]:
    cells = expected_cells((e for events in run.events.values() for e in events), MINUTE_MS)
    return {(page.decode(), start_ms) for page, start_ms in cells}


def instant(time_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time_ms / 1000))


def test_estimate_by_window_has_a_row_for_each_release(done):
    found = Command("estimate", str(done.config()), "--by", "window", "--json")
    assert (found.code, found.err) == (0, "")
    rows = [(*row["key"], row["from"]) for row in found.documents()]
    assert sorted(rows) == sorted((page, instant(start_ms)) for page, start_ms in expected(done))


def test_estimate_by_hour_has_a_row_for_each_key(done):
    found = Command("estimate", str(done.config()), "--by", "hour", "--json")
    assert (found.code, found.err) == (0, "")
    rows = [row for row in found.documents() if row["from"] == instant(START_MS)]
    assert sorted(row["key"] for row in rows) == sorted([page] for page in {page for page, _ in expected(done)})
    windows = {page: len([key for key, _ in expected(done) if key == page]) for page, _ in expected(done)}
    assert {row["key"][0]: row["released"] for row in rows} == windows
    assert all(row["complete"] and row["windows"] == 60 and row["estimate"] > 0 for row in rows)


def test_inspect_shows_every_record_of_both_topics(done):
    found = Command("inspect", str(done.config()), "--json")
    assert (found.code, found.err) == (0, "")
    kinds = [document["kind"] for document in found.documents()]
    assert kinds.count("release") == len(expected(done))
    assert kinds.count("marker") == len(done.read("sketches")) - len(expected(done))
    found = Command("inspect", str(done.config()), "--json", "--topic", "rollups", "--limit", "5")
    assert (found.code, found.err, len(found.documents())) == (0, "", 5)


@pytest.mark.parametrize("topic", ["sketches", "rollups"])
def test_export_writes_what_the_topics_hold(done, tmp_path, topic):
    found = Command("export", str(done.config()), "--topic", topic, "--out", str(tmp_path / "out.parquet"), "--json")
    assert (found.code, found.err) == (0, "")
    rows = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    records = [decode(value or b"") for _, _, _, value, _, _ in done.read(topic)]
    releases = [decode(value or b"") for _, _, _, value, _, _ in done.read("sketches")]
    rollups = summed(
        [r for r in records if isinstance(r, RollupRecord)], [r for r in releases if isinstance(r, Release)]
    )
    newest: dict[tuple[object, ...], Release | RollupRecord] = {}
    for record in rollups or records:
        if isinstance(record, Release | RollupRecord):  # of roll-ups a higher revision never comes first
            newest[json.dumps(decode_key(record.key)), record.window.start_ms, record.window.end_ms] = record
    [report] = found.documents()
    assert report["rows"] == len(rows) == len(newest) > 0
    assert report["conflicts"] == 0
    for row in rows:
        place = row["key"], *(round(row[name].timestamp() * 1000) for name in ("window_start", "window_end"))
        record = newest.pop(place)
        sketch = record.sketch if isinstance(record, Release) else record.merged
        blob = oracle.read(row["sketch"])
        assert (row["source_partition"], row["source_partitions"]) == (record.partition, 3)
        assert (blob.p, 2**blob.index_bits, blob.levels) == (row["flip_probability"], 64, 24)
        assert blob.bits == {i for i in range(8 * len(sketch.bits)) if sketch.bits[i // 8] >> i % 8 & 1}


def test_check_shows_what_would_be_counted(done):
    found = Command("check", str(done.config()), "--records", "300")
    assert found.code == 0
    assert [line.split(" merged")[0] for line in found.err.splitlines()] == ["warning: hours", "warning: days"]
    assert "configuration is valid" in found.out
    assert "300 records looked at: ok 300" in found.out
    assert "yet to make" not in found.out
    [line] = [line for line in found.out.splitlines() if line.startswith("a restart reads")]
    assert line.startswith("a restart reads the open windows again, at most 1m: 0 records came to one partition")
    assert line.endswith("keep the input for more than 2h")


def test_check_says_which_topics_are_still_missing(run):
    run.produce(page_views(30, 1))
    found = Command("check", str(run.config()))
    assert found.code == 0
    assert [line.split(" merged")[0] for line in found.err.splitlines()] == ["warning: hours", "warning: days"]
    [line] = [line for line in found.out.splitlines() if "yet to make" in line]
    assert line.endswith(": " + ", ".join(f"{run.id}.{name}" for name in OWN))


def test_estimate_before_anything_is_published_says_so(run):
    found = Command("estimate", str(run.config()), "--by", "window")
    assert (found.code, found.out) == (9, "")
    assert (
        found.error
        == f"error: pipeline {run.id} has published nothing yet: no window of it is closed, or every key was withheld"
    )


@pytest.mark.parametrize("command", ["ingest", "publish", "rollup"])
def test_a_worker_of_a_pipeline_that_never_ran_names_the_remedy(run, command):
    found = Command(command, str(run.config()), "--operator", "")
    assert found.code == 3
    assert all(f"{run.id}.{name}" in found.error for name in OWN)
    assert "--first-start" in found.error


def test_a_lost_ledger_is_not_begun_anew(kafka, tmp_path):
    """With its topic empty as with its topic gone."""
    run = Run(kafka, tmp_path)
    run.produce(page_views(600, MINUTES))
    with workers() as started:
        started.append(Worker(run.config(), first=True))
        wait_until(lambda: released(run), 90, started)
        assert started[0].stop() == 0
    ledger = f"{run.id}.ledger"
    with KafkaAdminClient(bootstrap_servers=kafka) as admin:
        admin.delete_topics([ledger])
        wait_until(lambda: ledger not in admin.list_topics(), 30)
    assert "--first-start" in ingest(run.config()).error
    for _ in ("the topic is made by this start", "the topic is there and empty"):
        found = ingest(run.config(), "--first-start")
        assert found.code == 4
        assert ledger in found.error
        assert "Raise pipeline.epoch" in found.error
    found = ingest(run.config(), "--no-publish")  # a publisher without the ledger would copy the same bytes once more
    assert found.code == 4
    assert "has no position" in found.error
    assert "--first-start" in found.error
    before = len(run.read("outbox", "read_uncommitted"))
    assert judge_outbox(run) == before, "nothing was released a second time"


def judge_outbox(run: Run) -> int:
    judge(run).require()
    return len(run.read("outbox", "read_uncommitted"))


@pytest.fixture
def started() -> Iterator[list[Worker]]:
    with workers() as list_of_workers:
        yield list_of_workers


def test_of_two_first_starts_at_once_one_begins_and_both_run(run, started):
    run.produce(page_views(3000, MINUTES))
    started += [Worker(run.config(), first=True), Worker(run.config(), first=True)]
    wait_until(lambda: released(run), 120, started)
    said = [worker.said() for worker in started]
    assert sum("begins at" in text for text in said) == 1, said
    for worker in started:
        assert worker.running, worker.said()
        assert worker.stop() == 0
    judge(run).require()


def test_a_first_start_by_itself_counts_nothing_and_is_done_once(run, started):
    run.produce(page_views(600, MINUTES))
    for said in ("begins at", "has begun before"):
        found = Command("first-start", str(run.config()))
        assert (found.code, found.out) == (0, "")
        assert said in found.err
        assert run.read("outbox", "read_uncommitted") == []
    started.append(Worker(run.config()))
    wait_until(lambda: released(run), 90, started)
    assert started[0].stop() == 0
    judge(run).require()


def stopped_early(run: Run, started: list[Worker]) -> dict[int, int]:
    """Let a worker count the input and end it; the offset that each partition goes on from."""
    run.produce(page_views(2000, MINUTES))
    started.append(Worker(run.config(), first=True))
    wait_until(lambda: released(run), 90, started)
    assert started[0].stop() == 0
    with KafkaAdminClient(bootstrap_servers=run.bootstrap) as admin:
        group = f"{run.id}.ingest.1"
        offsets = admin.list_group_offsets(group)[group]
    return {place.partition: at.offset for place, at in offsets.items()}


def test_input_that_is_gone_stops_the_worker_with_the_numbers(run, started):
    went_to = stopped_early(run, started)
    run.produce(page_views(300, 1, seed=2))
    with KafkaAdminClient(bootstrap_servers=run.bootstrap) as admin:
        admin.delete_records({TopicPartition(run.topic, number): offset + 5 for number, offset in went_to.items()})
    before = run.read("outbox", "read_uncommitted")
    found = ingest(run.config())
    assert found.code == 4
    assert any(
        f"partition {number}: reading should go on at offset {offset}, the log begins at {offset + 5}" in found.error
        for number, offset in went_to.items()
    )
    assert "5 records are gone" in found.error
    assert "raise pipeline.epoch" in found.error
    assert run.read("outbox", "read_uncommitted") == before


def test_another_epsilon_stops_the_worker_with_the_remedy(run, started):
    stopped_early(run, started)
    before = run.read("outbox", "read_uncommitted")
    path = run.config("other.toml")
    path.write_text(path.read_text().replace("epsilon = 2\n", "epsilon = 1\n"))
    found = ingest(path)
    assert found.code == 4
    assert "the configuration differs" in found.error
    assert "raise pipeline.epoch" in found.error
    assert run.read("outbox", "read_uncommitted") == before


def test_an_input_topic_that_was_made_anew_stops_the_worker(run, started):
    stopped_early(run, started)
    with KafkaAdminClient(bootstrap_servers=run.bootstrap) as admin:
        admin.delete_topics([run.topic])
        wait_until(lambda: run.topic not in admin.list_topics(), 30)
    make_topic(run.bootstrap, run.topic, run.partitions)
    assert read_all(run.bootstrap, run.topic) == []
    found = ingest(run.config())
    assert found.code == 4
    assert run.topic in found.error
