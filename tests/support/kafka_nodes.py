"""The nodes of a Kafka cluster for tests: what every one is told, and how they are started, lost and healed."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import random
import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

from kafka.errors import KafkaError
from support.kafka_topics import unready
from support.patience import patiently

POM = Path(__file__).parent / "kafka" / "pom.xml"
VERSION = re.search(r"<kafka.version>(.+?)</kafka.version>", POM.read_text("utf-8"))[1]  # type: ignore[index]
CONTROLLER = 100
"""The node that is the controller where there are several brokers; brokers are 1, 2, 3."""


class KafkaUnavailable(Exception):
    """There is no way here to get a Kafka; the message says what is missing."""


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time."""
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on, below those that outgoing connections take.

    A client that keeps calling a killed broker could otherwise be given the broker's own port, and keep it.
    """
    found: list[int] = []
    while len(found) < count:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found += [port] if port not in found else []
    return found


def listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


class Cluster:
    """One broker that is its own controller, or several and a controller. The subclasses run the nodes."""

    def __init__(self, folder: Path, brokers: int = 1, host: str = "127.0.0.1") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.live = folder / "live"
        self.brokers = list(range(1, brokers + 1))
        self.nodes = self.brokers if brokers == 1 else [CONTROLLER, *self.brokers]
        self.ports = dict(zip([CONTROLLER, *self.brokers], free_ports(brokers + 1), strict=True))
        self.host, self.bootstrap = host, ",".join(f"{host}:{self.ports[node]}" for node in self.brokers)
        self.paused: set[int] = set()
        self.more: dict[str, object] = {}
        """Settings of every node that a test wants otherwise; for before start()."""
        self.users = (folder / "users").open("a")

    def claim(self) -> None:
        """Be one of the processes for which the cluster runs; waits where the last one's is being ended."""
        fcntl.flock(self.users, fcntl.LOCK_SH)

    def outlast_others(self) -> None:
        fcntl.flock(self.users, fcntl.LOCK_EX)

    def start(self) -> str:
        """Bootstrap servers, once every broker answers. Raises RuntimeError with the end of the log where one fails."""
        self.claim()
        shutil.rmtree(self.live, ignore_errors=True)  # of a process that died before its guard ran
        self.live.mkdir()
        try:
            self.prepare()
            for node in self.nodes:
                self.launch(node)
            self.await_brokers()
        except BaseException:
            self.stop()
            raise
        return self.bootstrap

    def prepare(self) -> None:
        """Whatever comes before the first node."""

    def launch(self, node: int) -> None:
        raise NotImplementedError

    def runs(self, node: int) -> bool:
        raise NotImplementedError

    def kill(self, node: int) -> None:
        """kill -9, of a paused node too; returns once it is gone."""
        raise NotImplementedError

    def pause(self, node: int) -> None:
        """SIGSTOP: the node keeps its connections and answers nothing."""
        raise NotImplementedError

    def resume(self, node: int) -> None:
        raise NotImplementedError

    def log(self, node: int) -> str:
        """The end of it."""
        raise NotImplementedError

    def stop(self) -> None:
        """Kill every node and forget what it stored. A second time: nothing."""
        # Files before the claim: whoever waits for it would find the address of what has ended, or lose its own files.
        if not self.users.closed:
            shutil.rmtree(self.live, ignore_errors=True)
        self.users.close()

    def restart(self, node: int) -> None:
        """Start a killed node again; returns once every node that runs is in sync."""
        self.launch(node)
        self.await_brokers()

    def heal(self) -> None:
        """Every node runs and is in sync again, whatever a test did to it."""
        dead = [node for node in self.nodes if not self.runs(node)]
        for node in list(self.paused):
            self.resume(node)
        for node in dead:
            self.launch(node)
        self.await_brokers()

    def await_brokers(self) -> None:
        """Every broker that runs answers for itself and is in sync. Raises RuntimeError where one ends."""
        alive = {node for node in self.brokers if self.runs(node) and node not in self.paused}
        problem = ""
        for _ in patiently(lambda: f"{problem}\n{self.log(self.nodes[0])}", 0.1):
            if not (problem := self.problem(alive)):
                return
            for node in alive:
                if not self.runs(node):
                    raise RuntimeError(f"node {node} ended:\n{self.log(node)}")

    def problem(self, alive: set[int]) -> str:
        # Each is asked itself: for some seconds the others take a killed broker for a live one.
        for node in sorted(alive):
            if not listens(self.host, self.ports[node]):
                return f"node {node} does not listen"
        try:
            return next(filter(None, (unready(f"{self.host}:{self.ports[node]}", alive) for node in sorted(alive))), "")
        except (KafkaError, OSError) as error:
            return repr(error)

    def settings(self, node: int, voters: str) -> dict[str, object]:
        """What every node is told, whatever runs it: quick groups and transactions, small internal topics."""
        copies, in_sync = (3, 2) if len(self.brokers) >= 3 else (1, 1)
        alone = "broker,controller" if len(self.brokers) == 1 else "broker"
        return {
            "node.id": node,
            "process.roles": "controller" if node == CONTROLLER else alone,
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "num.network.threads": 2,
            "num.io.threads": 2,
            "auto.create.topics.enable": "false",
            "default.replication.factor": copies,
            "min.insync.replicas": in_sync,
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": in_sync,
            "transaction.state.log.num.partitions": 4,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1000,
            "broker.heartbeat.interval.ms": 500,
            "broker.session.timeout.ms": 4000,
            "log.cleaner.dedupe.buffer.size": 32 << 20,
            "log.initial.task.delay.ms": 1000,
            # What a test forgot to keep is gone at once, and not once in five minutes.
            "log.retention.check.interval.ms": 1000,
        } | self.more


def identity() -> str:
    """A new identity as Kafka writes it; none begins with a dash, which its tools would take for an option."""
    return "k" + base64.urlsafe_b64encode(os.urandom(16)).decode()[1:22]
