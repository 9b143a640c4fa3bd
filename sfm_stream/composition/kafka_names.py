"""The names that a pipeline has on a cluster: of topics, of consumer groups, and of workers in the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.config.config import Config


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


def ingest_epoch(worker: str) -> int | None:
    """The epoch of which a worker in the ledger is the ingest worker; None for a worker of another kind."""
    role, _, number = worker.partition("/")
    return int(number) if role == "ingest" else None
