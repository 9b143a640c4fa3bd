"""The cluster of `kafka_cluster` in containers, where a container engine answers."""

from __future__ import annotations

import contextlib
from pathlib import Path

import docker
from docker.errors import DockerException
from docker.models.containers import Container
from support.kafka_nodes import CONTROLLER, VERSION, Cluster, identity
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.network import Network

CLIENTS, BROKERS, QUORUM = 9092, 19092, 9093
"""Ports inside the containers: for the tests, among brokers, for the controller."""


def engine_answers() -> bool:
    try:
        with contextlib.closing(docker.from_env(timeout=3)) as client:
            return bool(client.ping())
    except (DockerException, OSError):
        return False


class KafkaContainers(Cluster):
    """Every node a container of one network; a killed one keeps its files and is started again."""

    def __init__(self, folder: Path, brokers: int = 1) -> None:
        super().__init__(folder, brokers, DockerClient().host())
        self.network = Network()
        self.containers: dict[int, DockerContainer] = {}
        self.cluster_id = identity()

    def prepare(self) -> None:
        self.network.create()

    def node_settings(self, node: int) -> dict[str, object]:
        inner = {"BROKER": BROKERS, "CLIENTS": CLIENTS} if node in self.brokers else {}
        inner |= {"CONTROLLER": QUORUM} if node == self.nodes[0] else {}
        given = self.settings(node, f"{self.nodes[0]}@node-{self.nodes[0]}:{QUORUM}") | {
            "listeners": ",".join(f"{name}://0.0.0.0:{port}" for name, port in inner.items()),
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,BROKER:PLAINTEXT,CLIENTS:PLAINTEXT",
            "inter.broker.listener.name": "BROKER",
        }
        if node != CONTROLLER:
            outside = f"CLIENTS://{self.host}:{self.ports[node]}"
            given["advertised.listeners"] = f"BROKER://node-{node}:{BROKERS},{outside}"
        return given

    def launch(self, node: int) -> None:
        if node in self.containers:
            self.container(node).start()
            return
        made = (
            DockerContainer(f"apache/kafka:{VERSION}").with_network(self.network).with_network_aliases(f"node-{node}")
        )
        made = made.with_env("CLUSTER_ID", self.cluster_id).with_env("KAFKA_HEAP_OPTS", "-Xmx512m")
        for name, value in self.node_settings(node).items():
            made = made.with_env("KAFKA_" + name.upper().replace(".", "_"), str(value))
        if node in self.brokers:
            made = made.with_bind_ports(CLIENTS, self.ports[node])
        self.containers[node] = made.start()

    def container(self, node: int) -> Container:
        return self.containers[node].get_wrapped_container()

    def runs(self, node: int) -> bool:
        if node not in self.containers:
            return False
        self.container(node).reload()
        return self.container(node).status in ("running", "paused")

    def kill(self, node: int) -> None:
        if node in self.paused:
            self.resume(node)  # an engine kills no paused container
        self.container(node).kill("SIGKILL")
        self.container(node).wait()

    def pause(self, node: int) -> None:
        self.container(node).pause()
        self.paused.add(node)

    def resume(self, node: int) -> None:
        self.container(node).unpause()
        self.paused.discard(node)

    def log(self, node: int) -> str:
        said: bytes = self.container(node).logs(tail=40)
        return said.decode("utf-8", "replace")

    def stop(self) -> None:
        for container in self.containers.values():
            container.stop(force=True)
        self.containers.clear()
        with contextlib.suppress(DockerException):
            self.network.remove()
        super().stop()
