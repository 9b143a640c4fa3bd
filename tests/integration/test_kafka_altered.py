"""On a real broker: a topic that changes under a running worker ends it, always with exit code 4 and the remedy."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from support.kafka_runs import Run, page_views, wait_until
from support.kafka_serving import Serving, serving
from support.kafka_topics import make_topic, produce
from support.patience import PATIENCE_S

from sfm_stream.composition.kafka import open_repartition
from sfm_stream.config.config import load_config
from sfm_stream.transport.kafka import topic_watch

pytestmark = pytest.mark.kafka
NEW_EPOCH = "raise pipeline.epoch and set window.start"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_watch, "EVERY_S", 1.0)
    monkeypatch.setattr(topic_watch, "CONFIRM_S", 0.3)


@pytest.fixture
def admin(kafka: str) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=kafka) as made:
        yield made


@pytest.fixture
def run(kafka: str, tmp_path: Path) -> Run:
    return Run(kafka, tmp_path)


def alter(admin: KafkaAdminClient, topic: str, setting: str, value: str) -> None:
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {setting: value})])


def delete(admin: KafkaAdminClient, topic: str) -> None:
    admin.delete_topics([topic])
    wait_until(lambda: topic not in admin.list_topics(), PATIENCE_S)


def remake(admin: KafkaAdminClient, run: Run, partitions: int) -> None:
    delete(admin, run.topic)
    make_topic(run.bootstrap, run.topic, partitions)


GONE = "was deleted( and made again|, and with it)"
"""A slow machine may look, twice, while the topic is not there again yet."""
Change = Callable[[KafkaAdminClient, Run], object]
CHANGES: dict[str, tuple[Change, str]] = {
    "made anew": (lambda admin, run: remake(admin, run, 3), f"{GONE}.*{NEW_EPOCH}"),
    "made anew with more": (lambda admin, run: remake(admin, run, 5), f"{GONE}.*{NEW_EPOCH}"),
    "partitions": (lambda admin, run: admin.create_partitions({run.topic: 5}), f"had 3 .*now has 5: .*{NEW_EPOCH}"),
    "clock": (
        lambda admin, run: alter(admin, run.topic, "message.timestamp.type", "LogAppendTime"),
        f"message.timestamp.type was CreateTime and now is LogAppendTime: .*{NEW_EPOCH}",
    ),
    "bound": (
        lambda admin, run: alter(admin, run.topic, "message.timestamp.after.max.ms", "7200000"),
        "time stamps after the broker's clock was .* and now is 2h: set it back",
    ),
    "retention": (
        lambda admin, run: alter(admin, run.topic, "retention.ms", "1000"),
        "retention.ms is 1000, set it to",
    ),
    "compaction": (
        lambda admin, run: alter(admin, run.topic, "cleanup.policy", "compact"),
        "cleanup.policy is compact",
    ),
    "sketches": (
        lambda admin, run: alter(admin, f"{run.id}.sketches", "retention.ms", "1000"),
        r"\.sketches: retention.ms is 1000, set it to -1",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_topic_ends_the_workers(run: Run, admin: KafkaAdminClient, change: str) -> None:
    run.produce(page_views(300, 2))
    alteration, message = CHANGES[change]
    with serving(run.config(), "ingest", "publish", "rollup", first=True) as workers:
        workers.await_joined()
        alteration(admin, run)
        error = workers.await_error()
    assert getattr(error, "exit_code", None) == 4, repr(error)
    assert re.search(message, str(error), re.DOTALL), str(error)
    if change == "made anew":  # with the remedy it goes on
        to_come = datetime.fromtimestamp(time.time() // 60 * 60 + 120, UTC).isoformat()
        with serving(run.config(epoch=2, start=to_come), "ingest", "publish", "rollup", first=True) as workers:
            workers.await_joined()


COPY_CHANGES: dict[str, tuple[Change, str]] = {
    "source": (
        lambda admin, run: admin.create_partitions({f"{run.id}-raw": 3}),
        r"-raw had 2 .*now has 3: .*add as many partitions to topic run-.*\.repartition",
    ),
    "source made anew": (
        lambda admin, run: (delete(admin, f"{run.id}-raw"), make_topic(run.bootstrap, f"{run.id}-raw", 2)),
        rf"-raw {GONE}.*delete topic run-.*\.repartition",
    ),
    "target": (
        lambda admin, run: alter(admin, run.topic, "message.timestamp.type", "LogAppendTime"),
        f"message.timestamp.type was CreateTime and now is LogAppendTime: .*{NEW_EPOCH}",
    ),
    "positions": (lambda admin, run: delete(admin, f"{run.id}.repartition"), "was deleted, .*into a new topic"),
}


@pytest.mark.parametrize("change", COPY_CHANGES)
def test_a_changed_topic_ends_a_copy(run: Run, admin: KafkaAdminClient, change: str) -> None:
    raw = make_topic(run.bootstrap, f"{run.id}-raw", 2)
    produce(run.bootstrap, raw, [(b"k", event.value, event.arrival_ms, None) for event in page_views(100, 2)])
    alteration, message = COPY_CHANGES[change]
    copy = Serving([open_repartition(load_config(run.config()), raw, run.partitions)])
    try:
        copy.await_joined()
        alteration(admin, run)
        error = copy.await_error()
    finally:
        copy.stop()
    assert getattr(error, "exit_code", None) == 4, repr(error)
    assert re.search(message, str(error), re.DOTALL), str(error)
