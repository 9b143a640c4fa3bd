"""Where the first start of an epoch begins to read: before all that it counts, behind what another clock stamped."""

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
    """Partition to an offset before the first record that may hold an event of the first window.

    A worker refuses a batch that another clock stamped than kafka.timestamps says. Where one would come first, the
    offset is the one behind the last of them. follows: another epoch did run, perhaps up to such a batch; then all that
    would be read is looked through, so that a new epoch gets past it. Raises StateError where the log begins too late,
    or where such records were written at a time that is to be counted.
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
    # Of a partition that is read from behind such batches all before them was written before window.start.
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
    """The offset behind the last batch of another clock from `start` on; None without any, or if the first is none.

    follows: look further than the first in any case. Raises StateError where one may be from after start_ms.
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
    """A time of the broker at which the last batch of another clock was there: stamps of producers do not tell it."""
    appended = last if timestamps == "create_time" else after
    return now_ms() if appended is None else int(appended.arrivals().max())
