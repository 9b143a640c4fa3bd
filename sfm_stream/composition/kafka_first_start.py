"""The first start of an epoch on a cluster: one transaction writes its first positions into the ledger.

This happens once for each epoch. If the ledger has entries of the epoch, a first start does nothing. If it has none and
releases of the epoch exist all the same, a first start refuses: counting anew would release the same data twice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from threading import Event

from sfm_stream.clock import monotonic_s, now_ms
from sfm_stream.composition.kafka_epochs import other_epochs, partition_end_ms
from sfm_stream.composition.kafka_first_checks import (
    PATIENCE_S,
    AlreadyReleased,
    require_stopped,
    require_unreleased,
)
from sfm_stream.composition.kafka_first_offsets import first_offsets
from sfm_stream.composition.kafka_names import Names
from sfm_stream.config.config import Config
from sfm_stream.events.event_schema import MAX_TIME_MS
from sfm_stream.pipeline.counting.position import encode_state, first_state
from sfm_stream.readable import instant
from sfm_stream.transport.kafka.cluster import Cluster
from sfm_stream.transport.kafka.ledger import Ledger
from sfm_stream.transport.kafka.ledger_entry import entry_key, entry_value
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.transport.kafka.transactions import Transactions, UnknownOutcome
from sfm_stream.transport.kafka.transport import FIRST_START
from sfm_stream.types import Commit, Record

_log = logging.getLogger(__name__)
_TRIES, _YIELD_S = 3, 4.0


def first_start(
    config: Config, names: Names, cluster: Cluster, log: TopicLog, source: str, partitions: Sequence[int]
) -> bool:
    """Write the first positions of this epoch into the ledger; False if it has them already.

    source: the identity of the input topic. partitions: those that it has. Raises StateError if releases exist that the
    ledger does not know, if a worker of another epoch runs, if an earlier epoch has released beyond window.start, or if
    the log begins too late.
    """
    worker, tries_left = names.ingest_worker(names.epoch), _TRIES
    while True:
        try:
            return _begin(config, names, cluster, log, source, partitions)
        except AlreadyReleased:
            # Another worker may have begun the epoch, and released, since the ledger was read.
            if Ledger(log, names.ledger).has(worker, partitions, PATIENCE_S):
                return False
            raise
        except UnknownOutcome:
            if not tries_left:
                raise
            tries_left -= 1
            # Another worker does the same and has fenced this one: give it some time to finish.
            ledger, until_s = Ledger(log, names.ledger), monotonic_s() + _YIELD_S
            while monotonic_s() < until_s:
                if ledger.has(worker, partitions, PATIENCE_S):
                    _log.info("another worker has begun epoch %d", names.epoch)
                    return False
                Event().wait(_YIELD_S / 20)


def _begin(
    config: Config, names: Names, cluster: Cluster, log: TopicLog, source: str, partitions: Sequence[int]
) -> bool:
    """As first_start, one attempt: gather what is known, decide, write. Raises UnknownOutcome if another worker fenced
    this one, AlreadyReleased as require_unreleased.
    """
    worker, window = names.ingest_worker(names.epoch), config.window
    transactions = Transactions(cluster, f"{names.pipeline}.first-start")
    try:
        # Before the ledger is read: this fences a worker that does the same right now, and decides what it left open.
        transactions.settle()
        ledger = Ledger(log, names.ledger)
        known = {partition: ledger.entries(partition, PATIENCE_S) for partition in partitions}
        if all(worker in entries for entries in known.values()):
            _log.info("epoch %d has begun before; --first-start does nothing", names.epoch)
            return False
        # Without window.start it is the next window border: the window of now would be counted in part.
        start_ms = window.start if window.start is not None else config.grid.end(config.grid.floor(now_ms()))
        require_unreleased(log, names, partitions, start_ms)
        others = {epoch for entries in known.values() for epoch in other_epochs(config, entries)}
        for entries in known.values():
            partition_end_ms(config, entries)  # which raises if an earlier epoch has not ended before this one
        offsets = first_offsets(config, log, names.source, partitions, start_ms, follows=bool(others))
        plan = config.plan(len(partitions), start_ms)
        records = []
        for partition in partitions:
            state = first_state(plan, source, config.event.latest or MAX_TIME_MS, offsets[partition])
            commit = Commit(partition, state.offset, encode_state(state))
            value = entry_value(commit, transactions.transactional_id + FIRST_START)
            records.append(Record(names.ledger, partition, entry_key(worker, partition), value, now_ms()))
        # Workers of other epochs read the ledger after they have joined their group, and wait for open transactions in
        # it. So either this check sees such a worker, or the worker will see these entries.
        transactions.commit(records, {}, None, before_commit=lambda: require_stopped(log, names, others))
        _log.info("epoch %d of pipeline %s begins at %s", names.epoch, names.pipeline, instant(start_ms))
        return True
    finally:
        transactions.close()
