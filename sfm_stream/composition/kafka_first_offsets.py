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
from sfm_stream.transport.kafka.batch_clock import end_of_other_clock
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
    timestamps, first_ms = config.kafka.timestamps, start_ms - config.window.max_future_skew
    begins = log.starts(topic, partitions)
    since = log.starts(topic, partitions, since_ms=max(first_ms, 1))
    ends = log.ends(topic, partitions, stable=True)
    # Records that are deleted from here on are missed by the worker, which does not begin before the log does.
    first_records = log.first_records(topic, partitions)
    offsets = {partition: max(begins[partition], since[partition]) for partition in partitions}
    behind: dict[int, int] = {}
    for partition, offset in offsets.items():
        batches = log.batches(topic, partition, offset, ends[partition])
        other_clock = end_of_other_clock(batches, timestamps, beyond_first=follows)
        if other_clock is None:
            continue
        end, told_ms = other_clock
        written_ms = now_ms() if told_ms is None else told_ms
        if written_ms > start_ms:
            raise StateError(
                f"window.start: topic {topic}, partition {partition}: records up to offset {end - 1} were not "
                f"stamped by the clock of kafka.timestamps ({timestamps}) and cannot be counted; they may have been "
                f"written as late as {instant(written_ms)}, window.start is {instant(start_ms)}. Set it to a border "
                "not before that"
            )
        _log.warning(
            "topic %s, partition %d: counting begins at offset %d; records before it were stamped by another clock "
            "than kafka.timestamps says, and events among them that lie behind window.start are not counted",
            topic,
            partition,
            end,
        )
        behind[partition] = end
    # Where reading begins behind batches of another clock, everything before was written before window.start.
    late = [p for p, (first, stamp_ms) in first_records.items() if first and stamp_ms > start_ms and p not in behind]
    if late:
        raise StateError(
            f"window.start: topic {topic}, partition {late[0]} begins later than {instant(start_ms)}: records before "
            "its first one are gone. Set a later window.start"
        )
    return offsets | behind
