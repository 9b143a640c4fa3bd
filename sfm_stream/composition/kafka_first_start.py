"""The first start of an epoch on a cluster: its first window border and positions, fixed once, in one transaction.

It never begins anew: where the ledger knows the epoch it does nothing, and where releases of the epoch exist that the
ledger does not know it refuses.
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
    """Write the first positions of this epoch into the ledger. False: they are there already, nothing was done.

    source: the identity of the input topic. Raises StateError where releases exist that the ledger does not know,
    where the epoch before it still runs or any has released further, or where the log begins too late.
    """
    names = names_of(config)
    for _ in range(_TRIES):
        try:
            return _begin(config, cluster, log, source)
        except UnknownOutcome:
            # Another worker does the same and has fenced this one, which leaves it some time.
            ledger, until_s = Ledger(log, names.ledger), monotonic_s() + _YIELD_S
            while monotonic_s() < until_s:
                if _has_begun(ledger, log, names):
                    _log.info("another worker has begun epoch %d", names.epoch)
                    return False
                Event().wait(_YIELD_S / 20)
    return _begin(config, cluster, log, source)


def _has_begun(ledger: Ledger, log: TopicLog, names: Names) -> bool:
    worker = names.ingest_worker(names.epoch)
    return all(worker in ledger.entries(partition, PATIENCE_S) for partition in range(log.partitions(names.source)))


def _begin(config: Config, cluster: Cluster, log: TopicLog, source: str) -> bool:
    names = names_of(config)
    transactions = Transactions(cluster, f"{names.pipeline}.first-start")
    try:
        transactions.settle()  # and fence whoever does the same right now
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
        # Old workers read the ledger after they have joined their group, and wait for what is undecided in it. So
        # either one of them is seen here, or it will see this.
        transactions.commit(records, {}, None, before_commit=lambda: require_stopped(log, names, known))
        _log.info("epoch %d of pipeline %s begins at %s", names.epoch, names.pipeline, instant(start_ms))
        return True
    finally:
        transactions.close()


def _start_ms(config: Config) -> int:
    """The configured border, else the first one that is still to come: no window is counted in part."""
    window = config.window
    if window.start is not None:
        return window.start
    now = now_ms()
    return now - now % window.size + window.size
