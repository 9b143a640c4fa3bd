"""The public metrics: estimates of the last published spans, made of published roll-ups alone."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from threading import Lock

from sfm_stream.estimation.estimate import Estimate, Status
from sfm_stream.observe.metrics import ESTIMATE, HIGH, LEFT_OUT, LOW, LOWER_BOUND, SPAN_END, Measurement, registry_of
from sfm_stream.pipeline.rollup.coverage import Absence, rollup_estimate
from sfm_stream.units import GRAINS
from sfm_stream.wire.codec import RollupRecord
from sfm_stream.wire.keys import decode_key

SHOWN_GRAINS = ("hour", "day", "week", "month")
"""Grains of the roll-ups whose estimates are public metrics. Of weeks and months only released ones have roll-ups."""


@dataclass(frozen=True, slots=True)
class _KeyEstimate:
    """The estimate of one key. rank: end of its span, and epoch. Of two estimates the one of larger rank is shown."""

    label: str
    rank: tuple[int, int]
    estimate: Estimate


@dataclass(slots=True)
class _LastSpan:
    """The last published final span of one partition and grain. left_out: number of keys without series."""

    end_ms: int
    keys: dict[bytes, _KeyEstimate] = field(default_factory=dict)
    left_out: int = 0


class PublicMetrics:
    """Estimates of the last span of each grain that was published, for at most `max_keys` keys of each grain."""

    def __init__(self, max_keys: int, absence: Absence) -> None:
        self.registry = registry_of("public", self._measurements)
        self._max_keys, self._absence = max_keys, absence
        self._last: dict[tuple[int, str], _LastSpan] = {}
        """(partition, grain) to its last span."""
        self._lock = Lock()

    def published(self, record: RollupRecord) -> None:
        """Take note of a record that was just published. One that is not final is not shown."""
        if not record.complete or record.grain not in SHOWN_GRAINS:
            return
        end_ms, partition_grain = record.window.end_ms, (record.partition, record.grain)
        with self._lock:
            span = self._last.get(partition_grain)
            if span is None or span.end_ms < end_ms:
                span = self._last[partition_grain] = _LastSpan(end_ms)
            if span.end_ms > end_ms:
                return
            known = span.keys.get(record.key)
            if known is None and self._keys_shown(record.grain) >= self._max_keys:
                span.left_out += 1
            elif known is None or known.rank <= (end_ms, record.epoch):
                estimate = rollup_estimate(record, self._absence)
                span.keys[record.key] = _KeyEstimate(key_label(record.key), (end_ms, record.epoch), estimate)

    def keep(self, partitions: Collection[int]) -> None:
        """Forget every other partition. It has another owner, which shows its keys."""
        with self._lock:
            for partition, grain in list(self._last):
                if partition not in partitions:
                    del self._last[partition, grain]

    def _keys_shown(self, grain: str) -> int:
        return sum(len(span.keys) for (_, grain_of), span in self._last.items() if grain_of == grain)

    def _measurements(self) -> Iterator[Measurement]:
        with self._lock:
            spans = [(grain, list(span.keys.values()), span.left_out) for (_, grain), span in self._last.items()]
        for grain in SHOWN_GRAINS:
            shown: dict[str, _KeyEstimate] = {}
            for each in (each for grain_of, listed, _ in spans if grain_of == grain for each in listed):
                if each.label not in shown or shown[each.label].rank < each.rank:
                    shown[each.label] = each
            for label, each in sorted(shown.items()):
                yield ESTIMATE, (label, grain), each.estimate.value
                yield LOW, (label, grain), each.estimate.low
                yield HIGH, (label, grain), each.estimate.high
                yield LOWER_BOUND, (label, grain), float(each.estimate.status is Status.LOWER_BOUND)
                yield SPAN_END, (label, grain), each.rank[0] / 1000
            left_out = [number for grain_of, _, number in spans if grain_of == grain]
            if left_out or grain in GRAINS:
                yield LEFT_OUT, (grain,), sum(left_out)


def key_label(key: bytes) -> str:
    """A published key as the value of a label. Different keys have different labels.

    A key of one text is that text, unless it begins with "["; every other key is a JSON array.
    """
    parts = decode_key(key)
    if len(parts) == 1 and isinstance(parts[0], str) and not parts[0].startswith("["):
        return parts[0]
    plain = [{"hex": part.hex()} if isinstance(part, bytes) else part for part in parts]
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
