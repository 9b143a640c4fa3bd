"""The first start of an epoch on a cluster: one transaction writes its first positions into the ledger.

This happens once for each epoch. If the ledger has entries of the epoch, a first start does nothing. If it has none and
releases of the epoch exist all the same, a first start refuses: counting anew would release the same data twice.
"""

from __future__ import annotations

import logging
from threading import Event

from sfm_stream.clock import monotonic_s, now_ms
from sfm_stream.composition.epochs import epoch_end_ms
from sfm_stream.composition.kafka_first_checks import PATIENCE_S, require_stopped, require_unreleased
from sfm_stream.composition.kafka_first_offsets import first_offsets
from sfm_stream.composition.kafka_names import Names, names_of, other_epochs
from sfm_stream.config.config import Config
from sfm_stream.errors import StateError
from sfm_stream.events.event_schema import MAX_TIME_MS
from sfm_stream.pipeline.counting.position import encode_state, first_state
from sfm_stream.readable import instant
from sfm_stream.transport.kafka.cluster import Cluster
from sfm_stream.transport.kafka.ledger import Ledger, entry_key, entry_value
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.transport.kafka.transactions import Transactions, UnknownOutcome
from sfm_stream.transport.kafka.transport import FIRST_START
from sfm_stream.types import Commit, Record

_log = logging.getLogger(__name__)
_TRIES, _YIELD_S = 3, 4.0


def first_start(config: Config, cluster: Cluster, log: TopicLog, source: str) -> bool:
    """Write the first positions of this epoch into the ledger; False if it has them already.

    source: the identity of the input topic. Raises StateError if releases exist that the ledger does not know, if a
    worker of another epoch runs, if an earlier epoch has released beyond window.start, or if the log begins too late.
    """
    names = names_of(config)
    for _ in range(_TRIES):
        try:
            return _begin(config, cluster, log, source)
        except UnknownOutcome:
            # Another worker does the same and has fenced this one: give it some time to finish.
            ledger, until_s = Ledger(log, names.ledger), monotonic_s() + _YIELD_S
            while monotonic_s() < until_s:
                if _has_begun(ledger, log, names):
                    _log.info("another worker has begun epoch %d", names.epoch)
                    return False
                Event().wait(_YIELD_S / 20)
    return _begin(config, cluster, log, source)


def _has_begun(ledger: Ledger, log: TopicLog, names: Names) -> bool:
    """Whether the ledger has an entry of this epoch in every partition."""
    worker = names.ingest_worker(names.epoch)
    return all(worker in ledger.entries(partition, PATIENCE_S) for partition in range(log.partitions(names.source)))


def _begin(config: Config, cluster: Cluster, log: TopicLog, source: str) -> bool:
    """As first_start, one attempt. Raises UnknownOutcome if another worker fenced this one."""
    names = names_of(config)
    transactions = Transactions(cluster, f"{names.pipeline}.first-start")
    try:
        transactions.settle()  # this also fences a worker that does the same right now
        ledger = Ledger(log, names.ledger)
        partitions = range(log.partitions(names.source))
        worker = names.ingest_worker(names.epoch)
        known = {partition: ledger.entries(partition, PATIENCE_S) for partition in partitions}
        if all(worker in entries for entries in known.values()):
            _log.info("epoch %d has begun before; --first-start does nothing", names.epoch)
            return False
        start_ms = _start_ms(config)
        try:
            require_unreleased(log, names, partitions, start_ms)
        except StateError:
            # Another worker may have begun the epoch, and released, since the ledger was read here.
            if _has_begun(ledger, log, names):
                return False
            raise
        others = [other_epochs(entries, names.epoch) for entries in known.values()]
        for states in others:
            epoch_end_ms(config, states)
        offsets = first_offsets(config, log, names.source, partitions, start_ms, follows=any(others))
        plan = config.plan(len(partitions), start_ms)
        records = []
        for partition in partitions:
            state = first_state(plan, source, config.event.latest or MAX_TIME_MS, offsets[partition])
            commit = Commit(partition, state.offset, encode_state(state))
            value = entry_value(commit, transactions.transactional_id + FIRST_START)
            records.append(Record(names.ledger, partition, entry_key(worker, partition), value, now_ms()))
        # Workers of other epochs read the ledger after they have joined their group, and wait for open transactions in
        # it. So either this check sees such a worker, or the worker will see these entries.
        transactions.commit(records, {}, None, before_commit=lambda: require_stopped(log, names, known))
        _log.info("epoch %d of pipeline %s begins at %s", names.epoch, names.pipeline, instant(start_ms))
        return True
    finally:
        transactions.close()


def _start_ms(config: Config) -> int:
    """window.start; where it is not set, the next window border: the window of now would be counted in part."""
    window = config.window
    if window.start is not None:
        return window.start
    now = now_ms()
    return now - now % window.size + window.size
