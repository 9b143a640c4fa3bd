"""On a real broker: which keys appear where, in every key mode, on one partition and on several.

One scenario for each mode and number of partitions goes through a first start, a restart, a death, a key that is added
later and a new epoch, with pipelines of all kinds of keys side by side. After each of these the oracle judges each kind
from the topics alone: a cell of the matrix.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product

import pytest
from kafka import KafkaProducer
from support.kafka_keys import (
    KINDS,
    LATE_NONE,
    MODES,
    SECOND_EPOCH,
    WINDOWS,
    Pipeline,
    Public,
    canonical,
    start_of,
)
from support.kafka_runs import Worker, wait_until, workers

from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.rows import rows_of
from sfm_stream.composition.kafka_cluster import topic_log
from sfm_stream.composition.kafka_sample import sample_topic
from sfm_stream.config.config import load_config
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import Reason, Window

pytestmark = pytest.mark.kafka
EVENTS = ["first start", "restart", "kill", "key added later", "epoch change"]
PATIENCE_S = 300


@pytest.fixture
def started() -> Iterator[list[Worker]]:
    with workers() as list_of_workers:
        yield list_of_workers


class Matrix:
    """Pipelines side by side in one worker process, and the cells of the matrix that they fill.

    windows: of each event the first and the last window that were closed behind it.
    """

    def __init__(self, bootstrap: str, pipelines: list[Pipeline], started: list[Worker]) -> None:
        self.pipelines, self.started = pipelines, started
        self.windows: dict[str, tuple[int, int]] = {}
        self.public = Public(bootstrap, pipelines)
        self.producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=20)

    def __enter__(self) -> Matrix:
        return self

    def __exit__(self, *_: object) -> None:
        self.public.close()
        self.producer.close()

    def start(self, *roles: str, epoch: int = 1, later: bool = False, first: bool = False, **death: object) -> Worker:
        configs = [each.config(epoch, later) for each in self.pipelines]
        self.started.append(Worker(configs, *roles, first=first, **death))  # type: ignore[arg-type]
        return self.started[-1]

    def produce(self, first: int, last: int) -> None:
        for each in self.pipelines:
            each.produce(self.producer, first, last)
        self.producer.flush()

    def finish(
        self, event: str, first: int, last: int, epoch: int = 1, also: Callable[[], bool] = lambda: True
    ) -> None:
        """Wait until these windows are public, and stop the worker. also: what else to wait for."""
        worker = self.started[-1]
        wait_until(lambda: not worker.running or self.public.closed(last, epoch), PATIENCE_S, self.started, 0)
        wait_until(lambda: not worker.running or also(), PATIENCE_S, self.started)
        assert worker.stop() == 0, worker.said()
        self.windows[event] = (first, last)

    def judge(self) -> set[tuple[str, str]]:
        """The cells that are judged, (event, kind): each is right."""
        found = {
            (event, each.kind.name, number): each.problems(self.public, *windows)[:5]
            for event, windows in self.windows.items()
            for number, each in enumerate(self.pipelines)
        }
        assert not any(found.values()), {cell: problems for cell, problems in found.items() if problems}
        assert not [problem for each in self.pipelines for problem in each.second_draws()]
        return {(event, kind) for event, kind, _ in found}


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("mode", MODES)
def test_each_partition_releases_its_own_keys_and_no_others(kafka, tmp_path, started, mode, partitions):
    pipelines = [Pipeline.make(kafka, tmp_path, mode, kind, partitions) for kind in (*KINDS, LATE_NONE)]
    require_a_test(pipelines, partitions)
    with Matrix(kafka, pipelines, started) as matrix:
        matrix.produce(0, 1)
        matrix.start(first=True)
        matrix.finish("first start", 0, 1)

        matrix.start()
        matrix.produce(2, 3)
        matrix.finish("restart", 2, 3)

        killed = matrix.start(point="offsets", count=6)
        matrix.produce(4, 5)
        wait_until(lambda: not killed.running, PATIENCE_S, started)
        assert killed.process.returncode == -signal.SIGKILL, killed.said()
        matrix.start()
        matrix.finish("kill", 4, 5)

        matrix.produce(6, 7)
        matrix.start(later=True)
        matrix.finish("key added later", 6, 7)

        matrix.produce(SECOND_EPOCH, WINDOWS - 1)
        matrix.start("ingest", "publish", "rollup", epoch=2, first=True)
        matrix.finish("epoch change", SECOND_EPOCH, WINDOWS - 1, epoch=2, also=lambda: rolled_up(pipelines))
        assert matrix.judge() == set(product(EVENTS, [kind.name for kind in KINDS]))
    for each in pipelines:
        require_coverage(each)
        require_the_same_of_check(each)


def require_a_test(pipelines: list[Pipeline], partitions: int) -> None:
    """The keys of each kind are spread over partitions, but for the one key of none, without which some own nothing."""
    owners = {each.kind.name: {each.owner(key) for key in each.declared(SECOND_EPOCH)} for each in pipelines}
    assert len(owners["none"]) == 1
    assert partitions == 1 or all(len(owners[name]) > 1 for name in ("text", "integer", "composite"))


def require_coverage(each: Pipeline) -> None:
    """A row for each key, of one partition, complete, out of as many windows as there are."""
    public = each.wanted(0, SECOND_EPOCH - 1) | each.wanted(SECOND_EPOCH, WINDOWS - 1)
    keys = {key for _, key, _ in public}
    terms, span = ReleaseTerms(each.run.id), Window(start_of(0), start_of(WINDOWS))
    with topic_log(load_config(each.config(epoch=2))) as log:
        whole = {canonical(row.key): row for row in rows_of(log, terms, Question("range", span=span))}
        assert whole.keys() == keys
        for key, row in whole.items():
            released = sum(place[1] == key for place in public)
            assert (row.released, row.windows, row.complete) == (released, WINDOWS, True), (each.kind.name, row)
        rows = list(rows_of(log, terms, Question("window", span=span)))
        assert len(rows) == len(public)
        assert all((row.released, row.windows, row.complete) == (1, 1, True) for row in rows)
        assert hourly(log, each) == expected_hours(each), each.kind.name


Hours = dict[tuple[bytes, int, int], tuple[int, int, bool]]
"""(key, start, epoch) to (released, windows, complete)."""


def hourly(log: TopicReader, each: Pipeline) -> Hours:
    return {
        (canonical(row.key), row.window.start_ms, row.epoch): (row.released, row.windows, row.complete)
        for row in rows_of(log, ReleaseTerms(each.run.id), Question("hour"))
    }


def expected_hours(each: Pipeline) -> Hours:
    """An hour has six windows; two of the second one are of epoch 1."""
    hours = {(start_of(0), 1): range(6), (start_of(6), 1): range(6, 8), (start_of(6), 2): range(8, 12)}
    places = [*each.wanted(0, SECOND_EPOCH - 1), *each.wanted(SECOND_EPOCH, WINDOWS - 1)]
    found = Counter((key, *hour) for _, key, window in places for hour, windows in hours.items() if window in windows)
    return {place: (released, 6, True) for place, released in found.items()}


def rolled_up(pipelines: list[Pipeline]) -> bool:
    for each in pipelines:
        with topic_log(load_config(each.config(epoch=2))) as log:
            if len(hourly(log, each)) < len(expected_hours(each)):
                return False
    return True


def require_the_same_of_check(each: Pipeline) -> None:
    """`check` finds what an ingest worker would: the reason of each record that is not counted."""
    found = sample_topic(load_config(each.config(epoch=2)), 1_000_000).reasons
    last = each.declared(WINDOWS - 1)
    strange = [place == each.owner(key) and key not in last for place, key, _, _ in each.events]
    astray = sum(place != each.owner(key) for place, key, _, _ in each.events)
    wrong = {Reason.KEY_MISPLACED: astray}
    if each.mode == "declared":
        wrong[Reason.KEY_NOT_DECLARED] = sum(strange)
    assert {reason: found[reason] for reason in wrong} == wrong
    assert found[Reason.OK] == len(each.events) - sum(wrong.values())


@pytest.mark.parametrize("partitions", [1, 3])
def test_an_empty_topic_publishes_the_empty_releases_of_declared_keys(kafka, tmp_path, started, partitions):
    pipelines = [Pipeline.make(kafka, tmp_path, "declared", kind, partitions, margin="1s") for kind in KINDS]
    with Matrix(kafka, pipelines, started) as matrix:
        matrix.start(first=True, later=True)
        matrix.finish("first start", 0, SECOND_EPOCH - 1)
        assert matrix.judge() == {("first start", kind.name) for kind in KINDS}
    for each in pipelines:
        assert len(each.wanted(0, SECOND_EPOCH - 1)) >= SECOND_EPOCH
