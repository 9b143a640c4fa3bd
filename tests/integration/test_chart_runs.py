"""The pods of the Helm chart in containers on a real broker: commands, configuration, Secrets, rights, probes, ends."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest
from support.charts import objects, pods
from support.kafka_runs import Run, closed_through, page_views
from support.patience import until
from support.pod_processes import PodProcess, containers, page

pytestmark = pytest.mark.kafka
MINUTES = 10
SECRETS = {"hash-key": {"key": bytes(range(32))}}
VALUES = """
secrets:
  - {name: hash-key, mountPath: /secrets/hash, components: [ingest, publish, rollup, serve, first-start]}
"""
HASH = '[sketch]\nhash = "blake2b"\nhash_key_file = "/secrets/hash/key"\n'
STARTED = ("ingest", "publish", "rollup", "serve")
Start = Callable[..., PodProcess]


def free_port() -> int:
    with socket.create_server(("", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def run(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    made = Run(kafka, tmp_path_factory.mktemp("run"))
    made.produce(page_views(2000, MINUTES))
    return made


@pytest.fixture(scope="module")
def start(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts the container of a component. At the end none is left."""
    containers()
    folder = tmp_path_factory.mktemp("pods")
    (folder / "values.yaml").write_text(VALUES)
    ports = {name: (free_port(), free_port(), free_port()) for name in STARTED}
    started: list[PodProcess] = []

    def begin(component: str, name: str = "", **settings: object) -> PodProcess:
        operator, serve, public = ports.get(component, (1, 2, 3))
        text = run.config(
            f"{component}.toml", metrics=f'[metrics]\npublic = "0.0.0.0:{public}"', **settings
        ).read_text()
        text = text.replace("[sketch]\n", HASH)
        file = folder / f"app-{len(started)}.toml"  # what was rendered of a file is not rendered again
        file.write_text(text)
        set_ports = f"firstStart=true,listen.operator={operator},listen.serve={serve}"
        found = objects("-f", folder / "values.yaml", "--set-file", f"config={file}", "--set", set_ports)
        started.append(PodProcess(found, pods(found)[component], folder / (name or component), SECRETS))
        return started[-1]

    yield begin
    for each in started:
        each.kill()


@pytest.fixture(scope="module")
def begun(start: Start) -> None:
    """The Job of the first start has done its work, and counted nothing."""
    job = start("first-start")
    assert job.process.wait(300) == 0, job.said()
    assert "begins at" in job.said()


def released(run: Run) -> bool:
    ends = closed_through(run.read("sketches"))
    return len(ends) == run.partitions


def test_every_pod_becomes_ready_and_its_work_is_done(begun, start, run):
    started = {component: start(component) for component in STARTED}
    for component, pod in started.items():
        until(lambda pod=pod: pod.probed("readiness") == 200, pod.said)
        assert pod.probed("startup") == pod.probed("liveness") == 200, component
        status = pod.status()
        assert status["NSpid"].split()[1] == "1"
        assert set(status["Uid"].split()) == {"10001"}
        assert (int(status["CapEff"], 16), int(status["CapBnd"], 16), status["NoNewPrivs"]) == (0, 0, "1")
    until(lambda: released(run), lambda: "\n".join(pod.said() for pod in started.values()), 0.5)
    _, said = page(started["serve"].port("serve"), "/v1/pipelines", {})
    assert run.id in said
    for pod in started.values():
        assert pod.stop() == 0, pod.said()
        assert not (pod.folder / "run" / "stopped").exists()


def test_a_worker_that_is_refused_stays_stopped_alive_and_not_ready(begun, start):
    """Another epsilon in the same epoch. The container is started again: the worker is not."""
    other = {"privacy": 'epsilon = 1\nkeys = "presence_is_public"'}
    for worker_runs in (True, False):
        pod = start("ingest", "refused", **other)
        until(lambda pod=pod: pod.probed("liveness") == 200 and "person has to look" in pod.said(), pod.said)
        assert pod.probed("readiness") == 503
        assert 'sfm_stopped_exit_code{command="ingest"} 4.0' in page(pod.port("operator"), "/metrics", {})[1]
        assert pod.said().count("error: ") == 1, "the worker's own error, once"
        assert pod.stop() == 4, worker_runs


def test_a_worker_whose_cluster_is_away_ends_and_is_for_the_kubelet_to_start_again(start):
    pod = start("publish", "away", bootstrap='["127.0.0.1:1"]')
    assert pod.process.wait(300) == 7, pod.said()
    assert list((pod.folder / "run").iterdir()) == []


def test_workers_of_an_epoch_that_never_began_stay_stopped(start, run, kafka, tmp_path):
    """Never by themselves: neither the topics nor positions are made."""
    pod = start("rollup", "unbegun", id=f"{run.id}-unbegun")
    until(lambda: "person has to look" in pod.said(), pod.said)
    assert "first-start" in pod.said()
    assert pod.stop() == 3
