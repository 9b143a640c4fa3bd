"""A real Kafka for tests, and what tests ask of it.

`find_cluster` takes the first that is there: a container engine (image apache/kafka), else Java 17 with Apache Kafka's
own jars, which Maven fetches once. `shared_bootstrap` gives one node to all worker processes of a test run, or the one
that KAFKA_BOOTSTRAP names. Nodes are killed at the end, and cannot outlive the processes that use them.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from support.kafka_nodes import CONTROLLER, POM, VERSION, Cluster, KafkaUnavailable, identity, listens, locked
from support.kafka_topics import make_topic, produce, read_all, topic_name
from support.patience import PATIENCE_S

__all__ = [
    "Cluster",
    "KafkaCluster",
    "KafkaUnavailable",
    "find_cluster",
    "locked",
    "make_topic",
    "produce",
    "read_all",
    "shared_bootstrap",
    "topic_name",
]

GUARD = """
import fcntl, os, shutil, signal, sys
users = open(sys.argv[1])
fcntl.flock(users, fcntl.LOCK_EX)
shutil.rmtree(sys.argv[2], ignore_errors=True)
os.killpg(0, signal.SIGKILL)
"""
"""Waits until no process holds its share of the lock, however it ended; then kills its process group: the nodes."""


def java() -> str:
    """The command. Raises KafkaUnavailable unless it is Java 17 or later."""
    found = shutil.which("java")
    if not found:
        raise KafkaUnavailable("no Java")
    said = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=PATIENCE_S).stderr
    version = re.search(r'version "(\d+)', said)
    if not version or int(version[1]) < 17:
        raise KafkaUnavailable(f"Java 17 or later is needed, this is: {said.strip()[:80]}")
    return found


def libraries() -> Path:
    """The folder of Kafka's jars, fetched by Maven the first time (some 60 MB). KAFKA_LIBS may name another one.

    Raises KafkaUnavailable without Maven, or where it cannot fetch them.
    """
    folder = Path(os.environ.get("KAFKA_LIBS") or Path.home() / ".cache/sfm-stream/kafka-libs" / VERSION)
    if folder.is_dir():
        return folder
    maven = shutil.which("mvn")
    if not maven:
        raise KafkaUnavailable(f"no Maven, and no jars of Kafka in {folder}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(folder.name + ".lock")):
        if folder.is_dir():
            return folder
        # The folder has its name only once it is whole, so that no lock is needed to read it.
        with tempfile.TemporaryDirectory(prefix=folder.name + "-", dir=folder.parent) as part:
            goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={part}/jars"]
            done = subprocess.run([maven, "-q", "-B", "-f", str(POM), *goal], capture_output=True, text=True)
            if done.returncode:
                raise KafkaUnavailable(f"Maven could not fetch the jars of Kafka: {done.stdout[-800:]}")
            Path(part, "jars").rename(folder)
    return folder


class KafkaCluster(Cluster):
    """Every node a Java process on 127.0.0.1. format_options: for Kafka's own tool, which makes what a node stores."""

    format_options: tuple[str, ...] = ()

    def __init__(self, folder: Path, brokers: int = 1) -> None:
        self.jvm = [java(), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
        self.jvm += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{libraries()}/*"]
        super().__init__(folder, brokers)
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.guard: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        watched = [self.users.name, str(self.live)]
        self.guard = subprocess.Popen([sys.executable, "-c", GUARD, *watched], process_group=0)
        cluster = identity()
        for node in self.nodes:
            self.properties(node).write_text("".join(f"{k}={v}\n" for k, v in self.node_settings(node).items()))
            # Only a controller needs Kafka's own tool, which takes a second: it writes the versions of the features.
            if node == self.nodes[0]:
                file = str(self.properties(node))
                self.run_tool("kafka.tools.StorageTool", "format", "-t", cluster, "-c", file, *self.format_options)
                continue
            (self.live / f"data-{node}").mkdir()
            meta = f"version=1\ncluster.id={cluster}\nnode.id={node}\ndirectory.id={identity()}\n"
            (self.live / f"data-{node}" / "meta.properties").write_text(meta)

    def run_tool(self, *call: str) -> None:
        done = subprocess.run([*self.jvm, *call], capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode:
            raise RuntimeError(f"{call[0]}: {done.stdout}{done.stderr}")

    def properties(self, node: int) -> Path:
        return self.live.parent / f"node-{node}.properties"

    def node_settings(self, node: int) -> dict[str, object]:
        listeners = [f"PLAINTEXT://127.0.0.1:{self.ports[node]}"] if node in self.brokers else []
        if node == self.nodes[0]:
            listeners += [f"CONTROLLER://127.0.0.1:{self.ports[CONTROLLER]}"]
        return self.settings(node, f"{self.nodes[0]}@127.0.0.1:{self.ports[CONTROLLER]}") | {
            "listeners": ",".join(listeners),
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": self.live / f"data-{node}",
        }

    def launch(self, node: int) -> None:
        assert self.guard is not None
        with (self.live.parent / f"node-{node}.log").open("ab") as log:
            self.processes[node] = subprocess.Popen(
                [*self.jvm, "kafka.Kafka", str(self.properties(node))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=self.guard.pid,
            )
        # Brokers that find no controller wait longer and longer before they ask again.
        while node == CONTROLLER and self.runs(node) and not listens("127.0.0.1", self.ports[node]):
            time.sleep(0.05)

    def runs(self, node: int) -> bool:
        return node in self.processes and self.processes[node].poll() is None

    def kill(self, node: int) -> None:
        self.processes[node].kill()
        self.processes[node].wait()
        self.paused.discard(node)

    def pause(self, node: int) -> None:
        self.processes[node].send_signal(signal.SIGSTOP)
        self.paused.add(node)

    def resume(self, node: int) -> None:
        self.processes[node].send_signal(signal.SIGCONT)
        self.paused.discard(node)

    def log(self, node: int) -> str:
        return (self.live.parent / f"node-{node}.log").read_text("utf-8", "replace")[-3000:]

    def stop(self) -> None:
        if self.guard:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.guard.pid, signal.SIGKILL)
            for process in [self.guard, *self.processes.values()]:
                process.wait()
            self.guard = None
        super().stop()


def find_cluster(folder: Path, brokers: int = 1) -> Cluster:
    """A cluster that has yet to be started; it keeps its files in this folder. Raises KafkaUnavailable."""
    with contextlib.suppress(ModuleNotFoundError):  # testcontainers
        from support.kafka_containers import KafkaContainers, engine_answers

        if engine_answers():
            return KafkaContainers(folder, brokers)
    try:
        return KafkaCluster(folder, brokers)
    except KafkaUnavailable as problem:
        raise KafkaUnavailable(f"no container engine answers, and {problem}") from None


@contextlib.contextmanager
def shared_bootstrap(folder: Path) -> Iterator[str]:
    """Bootstrap servers of one node, the same for all processes that name this folder at the same time.

    The first one starts the node and the last one's end is its end. Raises KafkaUnavailable.
    """
    if given := os.environ.get("KAFKA_BOOTSTRAP"):
        yield given
        return
    cluster = find_cluster(folder)
    written, first = cluster.live / "bootstrap", False
    try:
        with locked(folder / "starting"):
            cluster.claim()
            first = not written.exists()
            if first:
                cluster.start()
                written.write_text(cluster.bootstrap)
            bootstrap = written.read_text()
        yield bootstrap
    finally:
        if first and not cluster.users.closed:
            cluster.outlast_others()
        cluster.stop() if first else cluster.users.close()
