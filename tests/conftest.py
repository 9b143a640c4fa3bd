"""Fixtures of a real Kafka and of both kernels. Where one is missing, its tests are skipped; under CI they fail."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import HealthCheck, settings
from support.both_kernels import chosen
from support.order import long_first

from sfm_stream import kernels

if TYPE_CHECKING:
    from support.kafka_cluster import Cluster

NEED_KAFKA = {"kafka", "kafka_three"}
# No property fails because a machine is slow. All else is as Hypothesis has it here, which under CI is another profile.
settings.register_profile("untimed", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.hookimpl(tryfirst=True)  # before -m is applied
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for a broker has the marker `kafka`; and what takes long is first."""
    for item in items:
        if NEED_KAFKA.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("kafka")
    items[:] = long_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


@pytest.fixture(params=["python", "native"])
def kernel(request: pytest.FixtureRequest) -> Iterator[kernels.Kernel]:
    """Each kernel, chosen for this process; where a configuration is run, `worker.kernel` decides."""
    if request.param == "native" and (problem := kernels.why_not()):
        _without("compiled kernel", problem)
    with chosen(request.param):
        yield request.param


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap servers of one node, which all worker processes share: make topics with names of their own."""
    clusters = _clusters()
    try:
        with clusters.shared_bootstrap(_folder_of_the_run(tmp_path_factory) / "kafka") as bootstrap:
            yield bootstrap
    except clusters.KafkaUnavailable as problem:
        _without_kafka(str(problem))


@pytest.fixture
def kafka_three(_three_brokers: Cluster) -> Iterator[Cluster]:
    """Three brokers and a controller, to be killed, restarted, paused and resumed; whole again after the test."""
    yield _three_brokers
    _three_brokers.heal()


@pytest.fixture(scope="module")
def _three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    clusters = _clusters()
    # One worker process at a time: two of these clusters would starve each other of processors and memory.
    with clusters.locked(_folder_of_the_run(tmp_path_factory) / "three-brokers.lock"):
        try:
            cluster = clusters.find_cluster(tmp_path_factory.mktemp("kafka-three"), brokers=3)
        except clusters.KafkaUnavailable as problem:
            _without_kafka(str(problem))
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture(scope="session")
def without_kafka() -> Callable[[str], NoReturn]:
    """For fixtures of other brokers: end the test with a reason, skipped or, under CI, failed."""
    return _without_kafka


def _clusters():
    try:
        from support import kafka_cluster
    except ModuleNotFoundError as problem:
        _without_kafka(str(problem))
    return kafka_cluster


def _folder_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for every worker process of a run, and no other run's."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def _without_kafka(reason: str) -> NoReturn:
    _without("Kafka", reason)


def _without(what: str, reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"no {what}: {reason}", pytrace=False)
    pytest.skip(f"no {what}: {reason}")
