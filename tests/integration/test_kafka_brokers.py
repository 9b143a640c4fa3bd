"""Three brokers, one of which is killed or stopped in the middle of the work: workers go on, the answers stay right."""

from __future__ import annotations

import signal
import time
from dataclasses import replace

import pytest
from integration.kafka_worker import INITIALIZED, READY
from kafka.errors import KafkaError
from support.kafka_oracle import judge
from support.kafka_runs import MINUTE_MS, START_MS, Event, Run, Worker, closed_through, page_views, wait_until, workers
from support.kafka_topics import coordinator

pytestmark = pytest.mark.kafka
MINUTES = 20


def released(run: Run, end_ms: int = START_MS + MINUTES * MINUTE_MS, topic: str = "sketches") -> bool:
    try:
        ends = closed_through(run.read(topic))
    except (LookupError, KafkaError):  # not made yet, or the cluster is only just back
        return False
    return len(ends) == run.partitions and min(ends.values()) >= end_ms


def begun(run: Run) -> bool:
    try:
        return len(run.read("sketches")) > 20
    except LookupError:
        return False


def views_to_come(number: int) -> list[Event]:
    """A burst of three minutes: after the last one, and later than now, so that no clock has closed its windows yet."""
    ahead = (int(time.time() * 1000) - START_MS) // MINUTE_MS + 2
    later = (ahead + 6 * number) * MINUTE_MS
    return [
        replace(event, at_ms=event.at_ms + later, arrival_ms=event.arrival_ms + later)
        for event in page_views(3_000, 3, pages=100, seed=number)
    ]


@pytest.mark.parametrize(("what", "held_s"), [("kill", 6), ("pause", 14)])
def test_a_broker_that_goes_away_in_the_stream(kafka_three, tmp_path, what, held_s):
    """kill: the process ends. pause: SIGSTOP, the coordinators of the transactions and groups on it with it, for longer
    than the client waits for an answer. Records go on coming."""
    settings = {"replication": 3, "session": "6s", "transaction": "10s"}
    run = Run(kafka_three.bootstrap, tmp_path, settings=settings)
    run.produce(page_views(8_000, 8, pages=100))
    with workers() as started:
        started.append(Worker(run.config(), first=True))
        wait_until(lambda: begun(run), 90, started)
        started.append(Worker(run.config(), "rollup"))
        wait_until(lambda: "assigned" in started[-1].said(), 60, started)
        for number in kafka_three.brokers:
            views = views_to_come(number)
            run.produce(views[:1_500])
            getattr(kafka_three, what)(number)
            until = time.monotonic() + held_s
            # Of a silent server that it happens to call first the client of the test would wait for all of its time.
            others = [node for node in kafka_three.brokers if node != number]
            run.bootstrap = ",".join(f"{kafka_three.host}:{kafka_three.ports[node]}" for node in others)
            run.produce(views[1_500:])
            run.bootstrap = kafka_three.bootstrap
            time.sleep(max(0.0, until - time.monotonic()))
            getattr(kafka_three, "restart" if what == "kill" else "resume")(number)
        last = views_to_come(len(kafka_three.brokers) + 1)
        end = last[0].arrival_ms - last[0].arrival_ms % MINUTE_MS
        run.produce(event for event in last if event.arrival_ms < end + MINUTE_MS)  # they close what is before `end`
        wait_until(lambda: released(run, end), 180, started)
        for worker in started:
            assert worker.running, worker.said()
            assert worker.stop() == 0, worker.said()
    judge(run, until_ms=end).require()


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


def at_the_coordinator(cluster, run: Run, started: list[Worker], point: str) -> tuple[Worker, int]:
    """A worker that is held in its sixth transaction, and the broker that it will ask next when it goes on."""
    worker = Worker(run.config(), "ingest", point=point, count=6, first=True)
    started.append(worker)
    wait_until(lambda: worker.stopped, 90, started, 0.05)
    if point == "stop-sent":
        return worker, coordinator(cluster.bootstrap, f"{run.id}.ingest.1", "__consumer_offsets")
    return worker, coordinator(cluster.bootstrap, worker.said().rpartition(READY)[2].split()[0])


@pytest.mark.parametrize("point", ["stop-ready", "stop-sent"])
def test_a_worker_whose_coordinator_is_lost_commits_through_the_next_one(kafka_three, tmp_path, point):
    """stop-ready: that of its transactions, stop-sent: that of its group. The same transaction, by the same producer:
    kafka-python alone forgets the request, and all ends with two transaction timeouts."""
    settings = {"replication": 3, "session": "20s", "transaction": "60s"}
    run = Run(kafka_three.bootstrap, tmp_path, settings=settings)
    run.produce(page_views(8_000, MINUTES, pages=50))
    with workers() as started:
        worker, asked = at_the_coordinator(kafka_three, run, started, point)
        kafka_three.kill(asked)
        worker.signal(signal.SIGCONT)
        wait_until(lambda: released(run, topic="outbox"), 180, started)
        assert "a transaction of" not in worker.said()
        assert worker.said().count(INITIALIZED + f"{run.id}.ingest.1") == 1
        kafka_three.restart(asked)
        started.append(Worker(run.config(), "publish"))
        wait_until(lambda: released(run), 180, started)
        for each in started:
            assert each.running, each.said()
            assert each.stop() == 0, each.said()
    judge(run).require()


def test_a_signal_ends_a_worker_whose_coordinator_is_silent(kafka_three, tmp_path):
    """It asks to commit, and the answer never comes: nobody knows the outcome, and the next start finds it out."""
    run = Run(kafka_three.bootstrap, tmp_path, settings={"replication": 3, "session": "6s", "transaction": "10s"})
    run.produce(page_views(8_000, MINUTES, pages=50))
    with workers() as started:
        worker, asked = at_the_coordinator(kafka_three, run, started, "stop-ready")
        kafka_three.pause(asked)
        assert worker.stop() == 0, worker.said()
        assert "ingest waits for the cluster and is left behind" in worker.said()
        assert "Traceback" not in worker.said()
        assert "rror" not in worker.said().rpartition("left behind")[2]
        kafka_three.resume(asked)
        started.append(Worker(run.config()))
        wait_until(lambda: released(run), 180, started)
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
