"""The other epochs of a pipeline on a cluster, as the ledger tells them, and where this one has to end for them."""

from __future__ import annotations

from collections.abc import Mapping

from sfm_stream.composition.epochs import epoch_end_ms
from sfm_stream.composition.kafka_names import ingest_epoch
from sfm_stream.config.config import Config
from sfm_stream.pipeline.counting.position import decode_state
from sfm_stream.transport.kafka.ledger_entry import Entry


def other_epochs(config: Config, entries: Mapping[str, Entry]) -> dict[int, Entry]:
    """Epoch to its entry, for every epoch but this one. entries: worker to its entry, in one partition."""
    epochs = ((ingest_epoch(worker), entry) for worker, entry in entries.items())
    return {epoch: entry for epoch, entry in epochs if epoch is not None and epoch != config.pipeline.epoch}


def partition_end_ms(config: Config, entries: Mapping[str, Entry]) -> int:
    """The border at which this epoch ends in the partition with these entries. Raises StateError as epoch_end_ms."""
    others = other_epochs(config, entries)
    return epoch_end_ms(config, {epoch: decode_state(entry.commit) for epoch, entry in others.items()})
