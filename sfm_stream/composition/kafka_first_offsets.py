"""The offsets at which the first start of an epoch begins to read.

They lie before every record that the epoch counts, and behind all batches that another clock stamped than
kafka.timestamps says: a worker refuses to read those.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sfm_stream.clock import now_ms
from sfm_stream.config.config import Config
from sfm_stream.errors import StateError
from sfm_stream.readable import instant
from sfm_stream.transport.kafka.cluster_values import LogBatch
from sfm_stream.transport.kafka.endpoints import is_of_other_clock
from sfm_stream.transport.kafka.topic_log import TopicLog

_log = logging.getLogger(__name__)


def first_offsets(
    config: Config, log: TopicLog, topic: str, partitions: Sequence[int], start_ms: int, *, follows: bool
) -> dict[int, int]:
    """Partition to the offset at which reading begins: before the first record that may hold an event of a window.

    If the first batch there was stamped by another clock, the offset is the one behind the last such batch. follows:
    whether an epoch ran before this one. It may have stopped at such a batch, so then all batches are looked at, not
    only the first. Raises StateError if the log begins too late, or if batches of another clock may have been written
    after start_ms.
    """
    first_ms = start_ms - config.window.max_future_skew
    begins = log.starts(topic, partitions)
    since = log.starts(topic, partitions, since_ms=max(first_ms, 1))
    offsets = {partition: max(begins[partition], since[partition]) for partition in partitions}
    behind = {
        partition: offset
        for partition, at in offsets.items()
        if (offset := _behind_other_clock(config.kafka.timestamps, log, topic, partition, at, start_ms, follows))
        is not None
    }
    # Where reading begins behind batches of another clock, everything before was written before window.start.
    late = [
        p
        for p, (offset, stamp_ms) in log.first_records(topic, partitions).items()
        if offset and stamp_ms > start_ms and p not in behind
    ]
    if late:
        raise StateError(
            f"window.start: topic {topic}, partition {late[0]} begins later than {instant(start_ms)}: records before "
            "its first one are gone. Set a later window.start"
        )
    return offsets | behind


def _behind_other_clock(
    timestamps: str, log: TopicLog, topic: str, partition: int, start: int, start_ms: int, follows: bool
) -> int | None:
    """The offset behind the last batch from `start` on that another clock stamped; None if there is none.

    None too if the first batch is no such batch, unless `follows`. Raises StateError if one of them may have been
    written after start_ms.
    """
    end = log.ends(topic, [partition], stable=True)[partition]
    last: LogBatch | None = None
    after: LogBatch | None = None
    for batch in log.batches(topic, partition, start, end):
        if is_of_other_clock(batch, timestamps):
            last, after = batch, None
        elif last is None:
            if not follows:
                return None
        elif after is None:
            after = batch
    if last is None:
        return None
    written_ms = _written_before_ms(timestamps, last, after)
    if written_ms > start_ms:
        raise StateError(
            f"window.start: topic {topic}, partition {partition}: records up to offset {last.next_offset - 1} were not "
            f"stamped by the clock of kafka.timestamps ({timestamps}) and cannot be counted; they may have been "
            f"written as late as {instant(written_ms)}, window.start is {instant(start_ms)}. Set it to a border not "
            "before that"
        )
    _log.warning(
        "topic %s, partition %d: counting begins at offset %d; records before it were stamped by another clock than "
        "kafka.timestamps says, and events among them that lie behind window.start are not counted",
        topic,
        partition,
        last.next_offset,
    )
    return last.next_offset


def _written_before_ms(timestamps: str, last: LogBatch, after: LogBatch | None) -> int:
    """A time by which the batch `last` was written, by a clock of a broker.

    Time stamps of producers do not tell it. If `last` has these, the batch after it, which a broker stamped, is taken;
    without such a batch it is now.
    """
    appended = last if timestamps == "create_time" else after
    return now_ms() if appended is None else int(appended.arrivals().max())
