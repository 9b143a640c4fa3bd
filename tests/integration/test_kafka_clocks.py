"""On a real broker: only what the clock of kafka.timestamps stamped is counted, and every refusal's remedy works."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from support.kafka_runs import Event, Run, cells_of, closed_through, expected_cells, wait_until
from support.kafka_serving import Serving, serving
from support.patience import PATIENCE_S, until

from sfm_stream.cli.check import check
from sfm_stream.errors import StateError
from sfm_stream.transport.kafka import topic_watch
from sfm_stream.transport.kafka.kafka_python.client import KafkaPythonCluster
from sfm_stream.transport.kafka.topics import facts
from sfm_stream.wire.codec import Release, decode
from sfm_stream.wire.keys import decode_key

pytestmark = pytest.mark.kafka
SIZE_MS = 1000
TYPES = {"create_time": "CreateTime", "log_append_time": "LogAppendTime"}
OTHER = {"create_time": "log_append_time", "log_append_time": "create_time"}


@pytest.fixture(autouse=True)
def _unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a batch says has to be enough: it may come before anybody has looked at the topic."""
    monkeypatch.setattr(topic_watch, "EVERY_S", 1e9)


@pytest.fixture
def admin(kafka: str) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=kafka) as made:
        yield made


def make_run(kafka: str, folder: Path, timestamps: str, **settings: object) -> Run:
    """One partition and short windows; the time stamp of a record is its event time."""
    fixed = {"timestamps": timestamps, "time": "", "size": "1s", "grace": "1s"}
    return Run(kafka, folder, 1, fixed | settings)


def stamp_by(admin: KafkaAdminClient, run: Run, timestamps: str) -> None:
    wanted = {"message.timestamp.type": TYPES[timestamps]}
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, run.topic, wanted)])
    until(
        lambda: facts(KafkaPythonCluster((run.bootstrap,)), [run.topic])[run.topic].timestamp_type == TYPES[timestamps]
    )


def now_ms() -> int:
    return int(time.time() * 1000)


def views(users: range, at_ms: int | None = None) -> list[Event]:
    at = now_ms() if at_ms is None else at_ms
    return [Event("page", f"u{number}", at, at) for number in users]


def border(since_ms: int) -> int:
    """A window border that is not before this, and still to come for a while."""
    return (max(since_ms, now_ms() + 2 * SIZE_MS) // SIZE_MS + 1) * SIZE_MS


def at(start_ms: int) -> str:
    return datetime.fromtimestamp(start_ms / 1000, UTC).isoformat()


def written_ms(error: StateError) -> int:
    """Until when the refused records may have been written, as the message says."""
    [said] = re.findall(r"written as late as (\S+Z)", str(error))
    return round(datetime.fromisoformat(said).timestamp() * 1000)


def await_clock(until_ms: int) -> None:
    wait_until(lambda: now_ms() >= until_ms, PATIENCE_S, every_s=0.1)


def counted(run: Run, epoch: int) -> set[tuple[int, int]]:
    """The cells of all that is released of an epoch."""
    records = [decode(value or b"") for _, _, _, value, _, _ in run.read("sketches")]
    releases = [record for record in records if isinstance(record, Release) and record.epoch == epoch]
    assert {decode_key(release.key) for release in releases} <= {("page",)}
    return set().union(*map(cells_of, releases))


def cells(events: list[Event]) -> set[tuple[int, int]]:
    return set().union(*expected_cells(events, 1 << 62, start_ms=0).values())


def await_released(run: Run, through_ms: int, epoch: int, workers: Serving) -> None:
    def done() -> bool:
        return workers.error is not None or closed_through(run.read("sketches"), epoch).get(0, 0) >= through_ms

    wait_until(done, PATIENCE_S)
    assert workers.error is None, workers.error


def count_on(run: Run, config: Path, epoch: int, users: range, start_ms: int = 0) -> None:
    """From start_ms on, or the border after the start, these users are counted, and nobody else."""
    with serving(config, "ingest", "publish", first=True) as workers:
        workers.await_joined()
        await_clock(max(start_ms, now_ms() + SIZE_MS))
        run.produce(views(users))
        await_released(run, now_ms(), epoch, workers)
    assert counted(run, epoch) == cells(views(users))


def test_what_producers_stamped_before_the_topic_was_altered_is_not_counted(kafka, tmp_path, admin, caplog):
    """Ten minutes ahead, or a century: a first start says when it can begin, and then begins behind it."""
    run = make_run(kafka, tmp_path, "log_append_time")
    stamp_by(admin, run, "create_time")
    admin.alter_configs(
        [ConfigResource(ConfigResourceType.TOPIC, run.topic, {"message.timestamp.after.max.ms": str((1 << 63) - 1)})]
    )
    ahead_ms = now_ms() + 600_000
    run.produce([*views(range(50)), *views(range(50, 51), ahead_ms), *views(range(51, 100))])
    run.produce(views(range(100, 101), now_ms() + 100 * 365 * 86_400_000))
    run.produce(views(range(101, 103)))
    stamp_by(admin, run, "log_append_time")
    with pytest.raises(StateError) as refused, serving(run.config(), "ingest", first=True):
        pass
    assert str(refused.value).startswith("window.start: topic ")
    assert "up to offset 102 were not" in str(refused.value)
    assert written_ms(refused.value) <= now_ms()
    checked = CliRunner().invoke(check, [str(run.config())])
    assert checked.exit_code == 0
    assert "of the last batches; a worker that reads them ends" in caplog.text
    run.produce(views(range(1000, 1010)))  # stamped by the broker, before window.start
    with pytest.raises(StateError) as refused, serving(run.config(), "ingest", first=True):
        pass
    start_ms = border(written_ms(refused.value))
    count_on(run, run.config(start=at(start_ms)), 1, range(200, 240), start_ms)


def test_without_a_start_counting_begins_behind_the_other_clock(kafka, tmp_path, admin):
    run = make_run(kafka, tmp_path, "log_append_time")
    stamp_by(admin, run, "create_time")
    run.produce([*views(range(99)), *views(range(99, 100), now_ms() + 600_000)])
    stamp_by(admin, run, "log_append_time")
    path = run.config()
    path.write_text(re.sub("start = .*", "", path.read_text()))

    def begun() -> bool:
        """It is refused if the border after now has passed before it has looked through the log: then try again."""
        try:
            with serving(path, "ingest", first=True):
                return True
        except StateError as refused:
            if not str(refused).startswith("window.start: topic "):
                raise
            return False

    until(begun)
    count_on(run, path, 1, range(200, 240))


@pytest.mark.parametrize("timestamps", TYPES)
def test_a_topic_altered_under_a_running_worker_ends_it_before_anything_is_counted(kafka, tmp_path, admin, timestamps):
    """The remedy is a new epoch: it gets past the records that the old one refused."""
    run = make_run(kafka, tmp_path, timestamps)
    stamp_by(admin, run, timestamps)
    start_ms = border(0)
    with serving(run.config(start=at(start_ms)), "ingest", "publish", first=True) as workers:
        workers.await_joined()
        await_clock(start_ms)
        run.produce(views(range(20)))
        await_released(run, now_ms(), 1, workers)
        stamp_by(admin, run, OTHER[timestamps])
        run.produce(views(range(20, 40)))
        error = workers.await_error()
    assert isinstance(error, StateError)
    assert error.exit_code == 4
    refused = (
        f"batch at offset 20: its time stamps are {TYPES[OTHER[timestamps]]} where kafka.timestamps is {timestamps}"
    )
    # What stopped it is the batch; said is what became of the topic, if its settings tell by then.
    assert refused in f"{error} {error.__cause__}"
    assert "raise pipeline.epoch and set window.start" in str(error)
    assert counted(run, 1) == cells(views(range(20)))
    stamp_by(admin, run, timestamps)
    with serving(run.config(start=at(start_ms)), "ingest", "publish") as workers:
        assert refused in str(workers.await_error()), "started again it says the same"
    run.produce(views(range(40, 60)))
    later_ms = border(0)
    count_on(run, run.config(epoch=2, start=at(later_ms)), 2, range(200, 240), later_ms)
    assert counted(run, 1) == cells(views(range(20)))
