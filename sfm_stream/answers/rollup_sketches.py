"""Tally and merged sketch of roll-ups, from their releases: records of version 3 hold neither."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from sfm_stream.answers.published_records import decoded
from sfm_stream.sketch.merge import merge_tally
from sfm_stream.sketch.tally_sum import TallySum, memory_of_sum
from sfm_stream.transport.contract import TopicReader
from sfm_stream.units import SKETCHES
from sfm_stream.wire.codec import Release, RollupRecord

_AT_ONCE_BYTES = 32 << 20
_SUM_BYTES, _START_BYTES = 2000, 150
"""What a sum takes beside its cells, and the start of each release in it: more than the cells of small sketches."""


@dataclass(slots=True)
class _Sum:
    """The releases of one roll-up that were met so far. starts: of their windows."""

    record: RollupRecord
    sum: TallySum
    starts: set[int] = field(default_factory=set)

    def takes(self, release: Release) -> bool:
        """Whether a release was added: a new one, of the span, where any is lacking."""
        span, window = self.record.window, release.window
        inside = span.start_ms <= window.start_ms and window.end_ms <= span.end_ms
        if not inside or not self.lacks or window.start_ms in self.starts:
            return False
        self.starts.add(window.start_ms)
        self.sum.add(release.sketch)
        return True

    @property
    def lacks(self) -> int:
        """How many releases are still to come."""
        return self.record.released - self.sum.releases

    def with_sketches(self) -> RollupRecord:
        """The record with tally and merged sketch; as it is where releases are missing."""
        if self.lacks:
            return self.record
        tally = self.sum.tally()
        if self.record.span is None:
            tally = replace(tally, sizes=None)
        return replace(self.record, tally=tally, merged=merge_tally(tally), kind=None)


def with_sketches(reader: TopicReader, rollups: Iterable[RollupRecord]) -> Iterator[RollupRecord]:
    """The roll-ups in their order, each with the tally and the merged sketch of its releases.

    A record that holds both is as it is, and so is one whose releases are not in the sketch topic any more. A roll-up
    is made of the first releases in the order of the topic that are of its key and in its span, as many as it says,
    each id once: so the same ones are found again, whatever came later. Sums of some 32 MiB are made in one reading.
    """
    waiting: list[RollupRecord] = []
    room = _AT_ONCE_BYTES
    for record in rollups:
        if record.tally is not None and not waiting:
            yield record
            continue
        waiting.append(record)
        room -= _size(record)
        if room <= 0:
            yield from _at_once(reader, waiting)
            waiting, room = [], _AT_ONCE_BYTES
    yield from _at_once(reader, waiting)


def _size(record: RollupRecord) -> int:
    """Bytes of memory that a roll-up takes while it waits, about: of the sum that is made for it, or of its own."""
    size = _SUM_BYTES + len(record.key)
    if record.tally is not None and record.merged is not None:
        return size + record.tally.counts.nbytes + len(record.merged.bits)
    return size + _START_BYTES * record.released + memory_of_sum(record.of_releases.shape, record.released)


def _at_once(reader: TopicReader, rollups: list[RollupRecord]) -> Iterator[RollupRecord]:
    sums = {at: _Sum(each, TallySum.like(each.of_releases)) for at, each in enumerate(rollups) if each.tally is None}
    for partition in sorted({each.record.partition for each in sums.values()}):
        _add_up(reader, partition, [each for each in sums.values() if each.record.partition == partition])
    for at, record in enumerate(rollups):
        yield sums.pop(at).with_sketches() if at in sums else record


def _add_up(reader: TopicReader, partition: int, sums: list[_Sum]) -> None:
    """Add the releases of one partition to the sums they belong to, up to the last one that is lacking."""
    by_key: dict[tuple[object, ...], list[_Sum]] = {}
    for each in sums:
        by_key.setdefault(_key(each.record), []).append(each)
    lacking = sum(each.lacks for each in sums)
    for stored in reader.read(SKETCHES, partition, since_ms=min(each.record.window.start_ms for each in sums)):
        release = decoded(SKETCHES, stored)
        if isinstance(release, Release):
            lacking -= sum(each.takes(release) for each in by_key.get(_key(release), ()))
        if not lacking:
            return


def _key(record: Release | RollupRecord) -> tuple[object, ...]:
    return record.pipeline, record.epoch, record.span, record.key
