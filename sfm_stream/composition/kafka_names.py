"""The names that a pipeline has on a cluster: of topics, of consumer groups, and of workers in the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.config.config import Config
from sfm_stream.pipeline.counting.position import decode_state
from sfm_stream.transport.kafka.ledger import Entry
from sfm_stream.types import PartitionState


@dataclass(frozen=True, slots=True)
class Names:
    """Topics, groups and workers of a pipeline. All names but that of the input topic follow from its id."""

    pipeline: str
    epoch: int
    source: str

    @property
    def outbox(self) -> str:
        return f"{self.pipeline}.outbox"

    @property
    def ledger(self) -> str:
        return f"{self.pipeline}.ledger"

    @property
    def sketches(self) -> str:
        return f"{self.pipeline}.sketches"

    @property
    def rollups(self) -> str:
        return f"{self.pipeline}.rollups"

    @property
    def dead_letters(self) -> str:
        return f"{self.pipeline}.dead-letters"

    @property
    def publish_group(self) -> str:
        return f"{self.pipeline}.publish"

    @property
    def rollup_group(self) -> str:
        return f"{self.pipeline}.rollup"

    def ingest_group(self, epoch: int) -> str:
        return f"{self.pipeline}.ingest.{epoch}"

    def ingest_worker(self, epoch: int) -> str:
        """The name of the ingest worker of an epoch in the ledger."""
        return f"ingest/{epoch}"


def names_of(config: Config) -> Names:
    return Names(config.pipeline.id, config.pipeline.epoch, config.kafka.topic)


def other_epochs(entries: dict[str, Entry], epoch: int) -> dict[int, PartitionState]:
    """The committed states of every other epoch in the entries of one partition."""
    states: dict[int, PartitionState] = {}
    for worker, entry in entries.items():
        role, _, number = worker.partition("/")
        if role == "ingest" and int(number) != epoch:
            states[int(number)] = decode_state(entry.commit)
    return states
