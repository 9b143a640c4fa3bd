"""Idle partitions: which are read to their log end, so that the time alone may close their windows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from sfm_stream.clock import monotonic_s, now_ms
from sfm_stream.errors import BrokerAway
from sfm_stream.transport.kafka.cluster_values import LogEndQuery
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.types import NO_TIME, InputEnd

_log = logging.getLogger(__name__)
_ASK_EVERY_S = 1.0
"""How often the ends of partitions are asked for that bring nothing."""
_ANSWERED_S = 5.0
"""How long answers are waited for before all that are missing are asked for anew."""
_SILENT_S = 60.0
"""For how long no end is known before the log says so: longer than a replica that died counts as in sync."""


class IdleEnds:
    """The log ends of the partitions of one topic, and which of them are reached.

    A log end is asked for without waiting. Only where a broker does not tell log ends at all, its high watermark is
    asked for and waited for.

    A worker that has read up to a log end has everything that was appended before the query. Nothing below the end is
    undecided: a reader of committed records does not get past an open transaction. What a change of leaders cuts off
    was never acknowledged.
    """

    def __init__(self, log: TopicLog, topic: str) -> None:
        self._log, self._topic = log, topic
        self._ends: dict[int, tuple[int, int]] = {}
        """Partition to an end, and when it was asked for; NO_TIME where the end is a high watermark only."""
        self._query: LogEndQuery | None = None
        self._asked_from: dict[int, int] = {}
        """Partition to its position when its end was asked for; without partitions that were forgotten since."""
        self._asked_ms, self._ask_at, self._late_at = NO_TIME, 0.0, 0.0
        self._unknown_since: dict[int, float] = {}

    def forget(self, partition: int | None = None) -> None:
        """Drop what is known and asked of a partition, or of all: its position is about to change."""
        if partition is None:
            self._ends.clear()
            self._asked_from.clear()
        else:
            self._ends.pop(partition, None)
            self._asked_from.pop(partition, None)

    def reached(self, partitions: Iterable[int], position: Callable[[int], int]) -> list[InputEnd]:
        """InputEnd for each partition that is read to its end; asks anew now and then. position: how far one is read.

        asked_ms is NO_TIME where a broker does not tell log ends, and all that was readable then has been read.
        """
        self._take_answers()
        assigned, reached = list(partitions), []
        for partition in assigned:
            end, asked_ms = self._ends.get(partition, (None, NO_TIME))
            if end is not None and (at := position(partition)) >= end:
                reached.append(InputEnd(partition, False, asked_ms, at))
                del self._ends[partition]
        missing = [partition for partition in assigned if partition not in self._ends]
        if missing and self._query is None and monotonic_s() >= self._ask_at:
            self._asked_from = {partition: position(partition) for partition in missing}
            self._asked_ms = now_ms()  # before the query: what is appended later is not in the answer
            self._query = self._log.ask_log_ends(self._topic, missing)
            self._ask_at, self._late_at = monotonic_s() + _ASK_EVERY_S, monotonic_s() + _ANSWERED_S
        return reached

    def _take_answers(self) -> None:
        query = self._query
        if query is None:
            return
        over = query.over.is_set() or monotonic_s() >= self._late_at
        refused = query.refused & self._asked_from.keys() if over else set()
        for partition, end in list(query.told.items()):
            del query.told[partition]
            if partition not in self._asked_from:
                continue
            if end < self._asked_from[partition]:  # a broker that answers with something else than a log end
                refused.add(partition)
            else:
                self._ends[partition] = (end, self._asked_ms)
                self._unknown_since.pop(partition, None)
        if refused:
            self._take_high_watermarks(refused)
        if over:
            self._query = None
            for partition, why in list(query.why.items()):
                self._warn(partition, why)

    def _take_high_watermarks(self, partitions: set[int]) -> None:
        try:
            ends = self._log.ends(self._topic, sorted(partitions), stable=False)
        except BrokerAway as error:  # an idle partition can wait
            _log.info("the ends of idle partitions are not known: %s", error)
            return
        self._ends |= {partition: (end, NO_TIME) for partition, end in ends.items()}

    def _warn(self, partition: int, why: str) -> None:
        """Warn once whenever the end of a partition has been unknown for a long time."""
        since = self._unknown_since.setdefault(partition, monotonic_s())
        if monotonic_s() - since >= _SILENT_S:
            self._unknown_since[partition] = float("inf")
            _log.warning(
                "topic %s, partition %d: its log end cannot be found out (%s). Until it can, a window that no later "
                "record closes stays open",
                self._topic,
                partition,
                why,
            )
