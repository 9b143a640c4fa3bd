"""A roll-up that changes hands: the new owner builds open days on what the old one has published, all of it."""

from __future__ import annotations

import pytest
from support.fake_kafka import FakeCluster, run_on
from support.fake_kafka_broker import FakeBroker
from support.rollup_runs import HOUR_MS, QUARTER_MS, at, cheap_estimates, marker, release

from sfm_stream.pipeline.rollup import publication
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.transport.kafka.endpoints import Endpoints
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.transport.kafka.transport import KafkaTransport
from sfm_stream.units import ROLLUPS
from sfm_stream.wire.codec import RollupRecord, decode
from sfm_stream.workers.rollup import RollupWorker

T0, QUARTERS = at("2026-01-01"), 96
ENDPOINTS = Endpoints("sketches", "group", "rollup", "ledger", {ROLLUPS: "rollups"})


class Pipeline:
    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(publication, "estimate_many", cheap_estimates)
        self.cluster = FakeBroker(T0)
        run_on(self.cluster, patch)
        for topic in ("sketches", "ledger", "rollups"):
            self.cluster.create(topic, 1)
        self.rollups = self.cluster.log(("rollups", 0))

    def write(self, first: int, stop: int) -> None:
        for number in range(first, stop):
            start = T0 + number * QUARTER_MS
            payloads = (release(start), marker(start, start + QUARTER_MS))
            self.cluster.log(("sketches", 0)).append([(b"k", payload, start) for payload in payloads])

    def work(self, until_ms: int, grain: str) -> None:
        """One owner, until a span that ends then is published."""
        cluster = FakeCluster(broker=self.cluster)
        log = TopicLog(cluster, {ROLLUPS: "rollups"})
        transport = KafkaTransport(cluster, ENDPOINTS, log)
        worker = RollupWorker("views", calendar("UTC", QUARTER_MS, 0, 2030), transport, log, 8 << 20)
        for _ in range(400):
            worker.tick(lambda: False)
            if any((r.grain, r.window.end_ms) == (grain, until_ms) for r in self.published()):
                break
        else:
            raise AssertionError("it was not published")
        transport.close()

    def published(self) -> list[RollupRecord]:
        found = [decode(entry.value) for entry in self.rollups.entries if entry.commit is None and not entry.aborted]
        return [record for record in found if isinstance(record, RollupRecord)]

    def day(self) -> RollupRecord:
        [day] = [record for record in self.published() if record.grain == "day"]
        return day


def test_a_day_holds_the_hours_that_were_committed_and_not_readable_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica of the roll-ups is away, or the marker of their transaction is to come: the ledger is decided first."""
    whole = Pipeline(monkeypatch)
    whole.write(0, QUARTERS)
    whole.work(T0 + QUARTERS * QUARTER_MS, "day")
    handed = Pipeline(monkeypatch)
    handed.write(0, 40)
    handed.work(T0 + 10 * HOUR_MS, "hour")
    handed.rollups.held = (0, handed.cluster.monotonic_s() + 4)
    handed.write(40, QUARTERS)
    handed.work(T0 + QUARTERS * QUARTER_MS, "day")
    assert handed.day().windows == QUARTERS
    assert handed.day() == whole.day()
