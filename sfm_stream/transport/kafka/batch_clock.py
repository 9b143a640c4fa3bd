"""Which clock stamped a batch of the log, and whether that is the one that kafka.timestamps says."""

from __future__ import annotations

from collections.abc import Iterable

from sfm_stream.transport.kafka.cluster_values import LogBatch
from sfm_stream.transport.kafka.topic_facts import TIMESTAMP_TYPES


def is_of_other_clock(batch: LogBatch, timestamps: str) -> bool:
    """Whether another clock stamped this batch than `timestamps` says: kafka.timestamps, or "" for any clock.

    A batch whose format has no time stamps was not stamped by the broker. Under create_time it will do.
    """
    if not timestamps or not batch.timestamp_type:
        return timestamps == "log_append_time"
    return batch.timestamp_type != TIMESTAMP_TYPES[timestamps]


def end_of_other_clock(
    batches: Iterable[LogBatch], timestamps: str, *, beyond_first: bool
) -> tuple[int, int | None] | None:
    """(offset behind the last of these batches that another clock stamped, when that was written); None without one.

    The batches are ascending, of one partition. beyond_first: whether to look for such batches also behind a first one
    that is none; else that first one is all that is read. The time, in ms by a clock of a broker, is one by which the
    batch was written. Time stamps of producers do not tell it. If the batch has these, that of the batch after it is
    taken, which a broker stamped; None without such a batch, or where compaction has taken all records of it.
    """
    last: LogBatch | None = None
    after: LogBatch | None = None
    for batch in batches:
        if is_of_other_clock(batch, timestamps):
            last, after = batch, None
        elif last is None:
            if not beyond_first:
                return None
        elif after is None:
            after = batch
    if last is None:
        return None
    appended = last if timestamps == "create_time" else after
    stamps = () if appended is None else appended.arrivals().tolist()
    return last.next_offset, max(stamps, default=None)
