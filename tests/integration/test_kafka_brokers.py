"""Three brokers, one of which is killed or stopped in the middle of the work: the answers stay right."""

from __future__ import annotations

import signal
import time

import pytest
from integration.kafka_worker import READY
from kafka.errors import KafkaError
from support.kafka_oracle import judge
from support.kafka_runs import MINUTE_MS, START_MS, Run, Worker, closed_through, page_views, wait_until, workers
from support.kafka_topics import coordinator

pytestmark = pytest.mark.kafka
MINUTES = 20


def released(run: Run) -> bool:
    try:
        ends = closed_through(run.read("sketches"))
    except (LookupError, KafkaError):  # not made yet, or the cluster is only just back
        return False
    return len(ends) == run.partitions and min(ends.values()) >= START_MS + MINUTES * MINUTE_MS


def begun(run: Run) -> bool:
    try:
        return len(run.read("sketches")) > 20
    except LookupError:
        return False


@pytest.mark.parametrize("what", ["kill", "pause"])
def test_a_broker_that_goes_away_in_the_stream(kafka_three, tmp_path, what):
    """kill: for good until the end. pause: SIGSTOP, the coordinators of the transactions and groups on it with it."""
    settings = {"replication": 3, "session": "6s", "transaction": "10s"}
    run = Run(kafka_three.bootstrap, tmp_path, settings=settings)
    run.produce(page_views(20_000, MINUTES, pages=100))
    with workers() as started:
        started.append(Worker(run.config(), first=True))
        wait_until(lambda: begun(run), 90, started)
        started.append(Worker(run.config(), "rollup"))
        wait_until(lambda: "assigned" in started[-1].said(), 60, started)
        for number in kafka_three.brokers:
            getattr(kafka_three, what)(number)
            time.sleep(6)
            getattr(kafka_three, "restart" if what == "kill" else "resume")(number)
        wait_until(lambda: released(run), 180, started)
        for worker in started:
            assert worker.running, worker.said()
            assert worker.stop() == 0, worker.said()
    judge(run).require()


@pytest.mark.parametrize("worker_dies", [True, False])
def test_a_coordinator_that_is_stopped_while_it_is_asked_to_commit(kafka_three, tmp_path, worker_dies):
    """It finds the request when it goes on, perhaps of a worker that is dead by then: nobody knows the outcome."""
    run = Run(kafka_three.bootstrap, tmp_path, settings={"replication": 3, "session": "6s", "transaction": "10s"})
    run.produce(page_views(8_000, MINUTES, pages=50))
    with workers() as started:
        worker = Worker(run.config(), point="stop-ready", count=6, first=True)
        started.append(worker)
        wait_until(lambda: worker.stopped, 90, started, 0.05)
        asked = coordinator(kafka_three.bootstrap, worker.said().rpartition(READY)[2].split()[0])
        kafka_three.pause(asked)
        worker.signal(signal.SIGCONT)
        time.sleep(1.5)  # the request to commit is on its way to a broker that does not read it
        if worker_dies:
            worker.kill()
            started.append(Worker(run.config()))
            time.sleep(1)
        else:
            time.sleep(8)
        kafka_three.resume(asked)
        wait_until(lambda: released(run), 180, started)
        assert started[-1].running, started[-1].said()
        assert started[-1].stop() == 0, started[-1].said()
    judge(run).require()


def test_workers_outlast_a_cluster_that_is_away_for_longer_than_a_transaction_may_last(kafka_three, tmp_path):
    """The outcome of what was in hand cannot be asked for: they go on from the ledger, once it can be read again."""
    run = Run(kafka_three.bootstrap, tmp_path, settings={"replication": 3, "session": "6s", "transaction": "2s"})
    run.produce(page_views(20_000, MINUTES, pages=100))
    with workers() as started:
        started.append(Worker(run.config(), first=True))
        wait_until(lambda: begun(run), 90, started)
        for number in kafka_three.brokers:
            kafka_three.pause(number)
        wait_until(lambda: "goes on from what is committed" in started[0].said(), 60, started)
        for number in kafka_three.brokers:
            kafka_three.resume(number)
        wait_until(lambda: released(run), 180, started)
        assert started[0].running, started[0].said()
        assert started[0].stop() == 0, started[0].said()
    judge(run).require()
