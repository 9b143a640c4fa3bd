"""Where runs happen: a broker started as the tests do, its topics, and a folder for what runs leave behind."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from support.kafka_cluster import shared_bootstrap
from support.kafka_nodes import free_ports
from support.kafka_topics import make_topic, topic_name

from benchmarks.peers.data_sets import DataSet, write_lines

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"

WRITING_S = 600


@dataclass
class Site:
    """One broker and one folder. writer: the Python and the client that write topics. core: of all peers."""

    bootstrap: str
    folder: Path
    writer: tuple[str, str]
    core: int | None
    prefix: str = field(default_factory=lambda: topic_name("peers"))
    written: dict[str, str] = field(default_factory=dict)
    published: dict[tuple[str, str], Path] = field(default_factory=dict)
    """(kernel, name of the data set) to the configuration of a pipeline whose sketches of it are public."""

    def topic_of(self, data: DataSet) -> str:
        """The topic that holds these events; the first time it is written."""
        if data.name not in self.written:
            name = make_topic(self.bootstrap, f"{self.prefix}-{data.name}", data.partitions, {"segment.bytes": 1 << 28})
            self.write(name, data)
            self.written[data.name] = name
        return self.written[data.name]

    def write(self, topic: str, data: DataSet, **more: object) -> None:
        """Add these events to a topic."""
        click.echo(f"  writing {data.total:,} events to {topic}")
        python, client = self.writer
        fields = ("pages", "windows", "window_events", "start_ms", "one_a_batch", "partitions")
        given = {name: getattr(data, name) for name in fields} | more
        env = {"BOOTSTRAP": self.bootstrap, "TOPIC": topic, "TOPIC_OF_EVENTS": json.dumps(given)}
        call = [python, str(PROGRAMS / "write_topic.py"), client]
        subprocess.run(call, env=os.environ | env, check=True, timeout=WRITING_S)

    def lines_of(self, data: DataSet) -> Path:
        """The file that holds these events; the first time it is written."""
        path = self.folder / f"{data.name}.jsonl"
        if not path.exists():
            write_lines(data, path)
        return path

    def new_topic(self, name: str) -> str:
        return make_topic(self.bootstrap, name)

    def port(self) -> int:
        return free_ports(1)[0]

    def delete(self, prefix: str) -> None:
        """All topics whose names begin with this."""
        with KafkaAdminClient(bootstrap_servers=self.bootstrap) as admin:
            if names := [name for name in admin.list_topics() if name.startswith(prefix)]:
                admin.delete_topics(names)


class TopicEnds:
    """Where a topic ends, asked again and again."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
        self._topic = topic
        self._places: list[TopicPartition] = []

    def __call__(self) -> int:
        """The sum of its end offsets, markers of transactions counted; 0 before there is a topic."""
        if not self._places:
            self._places = [
                TopicPartition(self._topic, part) for part in self._consumer.partitions_for_topic(self._topic) or ()
            ]
        return sum(self._consumer.end_offsets(self._places).values()) if self._places else 0

    def close(self) -> None:
        self._consumer.close()


@contextmanager
def opened(folder: Path, writer: tuple[str, str]) -> Iterator[Site]:
    """A site that ends with the block, and its topics with it. Raises KafkaUnavailable."""
    cores = sorted(os.sched_getaffinity(0))
    with shared_bootstrap(folder / "kafka") as bootstrap:
        site = Site(bootstrap, folder, writer, cores[0] if len(cores) > 1 else None)
        try:
            yield site
        finally:
            site.delete(site.prefix)
