"""Roll-ups with what follows from their releases, added up one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from sfm_stream.sketch.merge import merge_tally
from sfm_stream.sketch.tally import Tally
from sfm_stream.sketch.window_sizes import WindowSizes
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
    assert len(parts) == rollup.released
    first, counts = parts[0], np.zeros((parts[0].shape.levels, parts[0].shape.buckets), np.int32)
    for each in parts:
        counts += each.cells()
    sizes = None if rollup.span is None else WindowSizes.of(parts)
    # Not Tally.of, which refuses equal bits: the tape of coins that some tests have repeats itself.
    tally = Tally(first.shape, first.flip_threshold, first.hash, len(parts), counts, sizes=sizes)
    return replace(rollup, tally=tally, merged=merge_tally(tally), kind=None)


def _source(record: Release | RollupRecord) -> tuple[object, ...]:
    return record.pipeline, record.epoch, record.partition, record.span, record.key
