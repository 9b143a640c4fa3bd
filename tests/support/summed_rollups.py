"""Roll-ups with what follows from their releases, added up one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sfm_stream.sketch.merge import merge
from sfm_stream.sketch.tally import Tally
from sfm_stream.wire.codec import Release, RollupRecord


def summed(rollups: Iterable[RollupRecord], releases: Sequence[Release]) -> list[RollupRecord]:
    """The records as they would be if they held a tally and a merged sketch. releases: in order of the topic."""
    by_key: dict[tuple[object, ...], dict[bytes, Release]] = {}
    for release in releases:
        by_key.setdefault(_source(release), {}).setdefault(release.release_id, release)
    return [each if each.tally else _summed(each, by_key[_source(each)].values()) for each in rollups]


def _summed(rollup: RollupRecord, releases: Iterable[Release]) -> RollupRecord:
    start_ms, end_ms = rollup.window.start_ms, rollup.window.end_ms
    inside = [each.sketch for each in releases if start_ms <= each.window.start_ms and each.window.end_ms <= end_ms]
    parts = inside[: rollup.released]
    tally = Tally.of(parts)
    assert tally.releases == rollup.released
    if rollup.span is None:
        tally = replace(tally, sizes=None)
    return replace(rollup, tally=tally, merged=merge(parts), kind=None)


def _source(record: Release | RollupRecord) -> tuple[object, ...]:
    return record.pipeline, record.epoch, record.partition, record.span, record.key
