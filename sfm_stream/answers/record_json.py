"""The JSON of a published record: the field names that `inspect --json` prints."""

from __future__ import annotations

import base64

from sfm_stream.answers.key_notation import finite, key_json
from sfm_stream.privacy.epsilon import epsilon_of
from sfm_stream.readable import instant
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord, WireRecord
from sfm_stream.wire.keys import decode_key


def record_json(record: WireRecord) -> dict[str, object]:
    """Every field of a record, bitmaps in base64.

    epsilon_bits and epsilon_count are what the bits and the noisy count of a release cost an item. No record has what
    the selection of its key costs, and a roll-up has no epsilon_bits: the flips of a merge are no privacy parameter.
    estimate, low, high and status of a roll-up are as they are published: those of the windows that have a release.
    span, origin and what belongs to a count are null where an epoch has none. What is made of the releases of a roll-up
    (ones, counts, the merged sketch) is null where the record does not hold it.
    """
    common = {
        "pipeline": record.pipeline,
        "epoch": record.epoch,
        "partition": record.partition,
        "partitions": record.partitions,
        "span": record.span,
    }
    if isinstance(record, CloseMarker):
        return {
            "kind": "marker",
            **common,
            "from": instant(record.start_ms),
            "to": instant(record.through_ms),
            "window_ms": record.window_ms,
            "fingerprint": record.fingerprint,
        }
    common |= {
        "key": key_json(decode_key(record.key)),
        "from": instant(record.window.start_ms),
        "to": instant(record.window.end_ms),
        "unit": record.unit,
    }
    if isinstance(record, Release):
        sketch = record.sketch
        return {
            "kind": "release",
            **common,
            "release_id": record.release_id.hex(),
            "buckets": sketch.shape.buckets,
            "levels": sketch.shape.levels,
            "k": sketch.flip_threshold,
            "epsilon_bits": epsilon_of(sketch.flip_threshold),
            "count": None if sketch.count is None else sketch.count.value,
            "epsilon_count": None if sketch.count is None else float(sketch.count.epsilon),
            "hash": sketch.hash,
            "bits": base64.b64encode(sketch.bits).decode(),
        }
    return {"kind": record.grain, **common, **_rollup_json(record)}


def _rollup_json(record: RollupRecord) -> dict[str, object]:
    tally, merged, of_releases = record.tally, record.merged, record.of_releases
    sizes = None if tally is None else tally.sizes
    return {
        "zone": record.zone,
        "origin": record.origin,
        "released": record.released,
        "decided": record.decided,
        "windows": record.windows,
        "complete": record.complete,
        "revision": record.revision,
        "buckets": of_releases.shape.buckets,
        "levels": of_releases.shape.levels,
        "k": of_releases.flip_threshold,
        "hash": of_releases.hash,
        "ones_by_level": None if tally is None else tally.counts.sum(axis=1).tolist(),
        "ones_of_releases": None if sizes is None else sizes.ones.tolist(),
        "counts_of_releases": None if sizes is None else [None if c is None else c.value for c in sizes.counts],
        "epsilon_count": None if record.count_epsilon is None else float(record.count_epsilon),
        "merged_k": None if merged is None else merged.flip_threshold,
        "merged": None if merged is None else base64.b64encode(merged.bits).decode(),
        "estimate": record.value,
        "standard_error": finite(record.standard_error),
        "low": record.low,
        "high": finite(record.high),
        "confidence": record.confidence,
        "status": record.status,
    }
