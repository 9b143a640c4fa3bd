"""Answers from published records: one row for each key and span. Reading costs no privacy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sfm_stream.errors import ConflictError, IncompatibleError
from sfm_stream.privacy.epsilon import epsilon_of
from sfm_stream.sketch.codec import CloseMarker, Release, RollupRecord, decode, payload_digest
from sfm_stream.sketch.estimate import Estimate, Status, estimate
from sfm_stream.sketch.keys import decode_key
from sfm_stream.sketch.merge import merge_tallies
from sfm_stream.sketch.records import release_id
from sfm_stream.sketch.tally_sum import TallySum
from sfm_stream.transport.base import TopicReader
from sfm_stream.types import ROLLUPS, SKETCHES, KeyPart, Window


@dataclass(frozen=True, slots=True)
class Row:
    """One answer. epsilon: the most that an item under this key can lose over the releases in it (basic composition).

    released, windows: in how many of the windows of the span the key has a release. complete: nothing more can come.
    epoch: of several the last one.
    """

    key: tuple[KeyPart, ...]
    grain: str
    window: Window
    estimate: Estimate
    epsilon: float
    released: int
    windows: int
    complete: bool
    epoch: int


def window_rows(reader: TopicReader, pipeline: str, span: Window | None, keys: set[bytes] | None) -> Iterator[Row]:
    """A row for each release in the span, in order of window and key. Raises ConflictError."""
    found = (r for r in _sketches(reader, pipeline, span, keys) if isinstance(r, Release))
    for release in sorted(found, key=lambda r: (r.window, r.key, r.epoch, r.partition)):
        yield Row(
            key=decode_key(release.key),
            grain="window",
            window=release.window,
            estimate=estimate(release.sketch),
            epsilon=epsilon_of(release.sketch.k),
            released=1,
            windows=1,
            complete=True,
            epoch=release.epoch,
        )


def rollup_rows(
    reader: TopicReader, pipeline: str, grain: str, span: Window | None, keys: set[bytes] | None
) -> Iterator[Row]:
    """A row for each quarter, hour or day inside the span: of several published revisions the last one."""
    newest: dict[tuple[Window, bytes, int, int], RollupRecord] = {}
    for record in _rollups(reader, pipeline, span, keys):
        if record.grain != grain:
            continue
        identity = (record.window, record.key, record.epoch, record.partition)
        known = newest.get(identity)
        if known is None or record.revision > known.revision:
            newest[identity] = record
    for _, record in sorted(newest.items()):
        yield Row(
            key=decode_key(record.key),
            grain=grain,
            window=record.window,
            estimate=_published(record),
            epsilon=record.released * epsilon_of(record.tally.k),
            released=record.released,
            windows=record.windows,
            complete=record.complete,
            epoch=record.epoch,
        )


def range_rows(reader: TopicReader, pipeline: str, span: Window, keys: set[bytes] | None) -> Iterator[Row]:
    """A row for each key: distinct items over the union of all windows inside the span.

    Releases of one epsilon are tallied. Where epochs of several epsilons meet, the paper's merge combines the tallies,
    at its price in accuracy. Raises ConflictError, and IncompatibleError where epochs differ in shape or hash.
    """
    found: dict[bytes, _Union] = {}
    decided: dict[int, dict[int, Window]] = {}
    for record in _sketches(reader, pipeline, span, keys):
        if isinstance(record, CloseMarker):
            known = decided.setdefault(record.partition, {}).get(record.epoch)
            low = known.start_ms if known else record.start_ms
            high = max(known.end_ms, record.through_ms) if known else record.through_ms
            decided[record.partition][record.epoch] = Window(low, high)
            continue
        found.setdefault(record.key, _Union(record)).add(record)
    for key, union in sorted(found.items()):
        yield Row(
            key=decode_key(key),
            grain="range",
            window=span,
            estimate=union.estimate(),
            epsilon=sum(part.releases * epsilon_of(k) for k, part in union.parts.items()),
            released=sum(part.releases for part in union.parts.values()),
            windows=(span.end_ms - span.start_ms) // union.window_ms,
            complete=all(_is_over(decided.get(partition, {}), span.end_ms) for partition in union.partitions),
            epoch=union.epoch,
        )


@dataclass(slots=True)
class LeftOut:
    """Records inside the span of a question that its answer does without.

    duplicates: identical copies. replaced: roll-ups that have a newer revision. conflicts: ids of releases with a
    second, different payload, each a privacy incident.
    """

    duplicates: int = 0
    replaced: int = 0
    conflicts: set[bytes] = field(default_factory=set)


def releases(
    reader: TopicReader, pipeline: str, span: Window | None, keys: set[bytes] | None, left_out: LeftOut
) -> Iterator[Release]:
    """Each release inside the span once, in order of the topic; of two payloads for one id the first, as in a roll-up.

    Holds an id and a digest of each release, no sketches.
    """
    for record in _sketches(reader, pipeline, span, keys, left_out):
        if isinstance(record, Release):
            yield record


def newest_rollups(
    reader: TopicReader, pipeline: str, span: Window | None, keys: set[bytes] | None, left_out: LeftOut
) -> Iterator[RollupRecord]:
    """The newest revision of each quarter, hour and day inside the span, in order of the topic.

    Reads the topic twice, so as to hold a number of each roll-up and no sketches: what is published after the first
    time is not in the answer.
    """
    newest: dict[bytes, int] = {}
    for record in _rollups(reader, pipeline, span, keys):
        place = _place(record)
        if place in newest:
            left_out.duplicates += record.revision == newest[place]
            left_out.replaced += record.revision != newest[place]
        newest[place] = max(newest.get(place, 0), record.revision)
    for record in _rollups(reader, pipeline, span, keys):
        # Taken out once it is found: a second record of that revision is a copy.
        if newest.get(place := _place(record)) == record.revision:
            del newest[place]
            yield record


@dataclass(slots=True)
class _Union:
    """Releases of one key: a sum for each epsilon, and where they come from."""

    first: Release
    parts: dict[int, TallySum] = field(default_factory=dict)
    partitions: set[int] = field(default_factory=set)
    window_ms: int = 1 << 62
    epoch: int = 0

    def add(self, release: Release) -> None:
        _require_mergeable(self.first, release)
        part = self.parts.get(release.sketch.k)
        if part is None:
            part = self.parts[release.sketch.k] = TallySum.like(release.sketch)
        part.add(release.sketch)
        self.partitions.add(release.partition)
        self.window_ms = min(self.window_ms, release.window.end_ms - release.window.start_ms)
        self.epoch = max(self.epoch, release.epoch)

    def estimate(self) -> Estimate:
        tallies = [part.tally() for _, part in sorted(self.parts.items())]
        return estimate(tallies[0]) if len(tallies) == 1 else estimate(merge_tallies(tallies))


def _is_over(epochs: dict[int, Window], end_ms: int) -> bool:
    """Whether each epoch of a partition is decided up to here, or up to where the next one begins."""
    ends = [epochs[number].start_ms for number in sorted(epochs)[1:]] + [end_ms]
    return bool(epochs) and all(
        epochs[number].end_ms >= min(end, end_ms) for number, end in zip(sorted(epochs), ends, strict=True)
    )


def _require_mergeable(first: Release, other: Release) -> None:
    if (first.sketch.shape, first.sketch.hash) != (other.sketch.shape, other.sketch.hash):
        raise IncompatibleError(
            f"epochs {first.epoch} and {other.epoch} of pipeline {first.pipeline} have sketches of different shape or "
            "hash: ask for one of them with --from and --to"
        )


def _published(record: RollupRecord) -> Estimate:
    return Estimate(
        record.value,
        record.standard_error,
        record.low,
        record.high,
        Status(record.status),
        record.confidence,
        unclamped=record.value,
    )


def _sketches(
    reader: TopicReader,
    pipeline: str,
    span: Window | None,
    keys: set[bytes] | None,
    left_out: LeftOut | None = None,
) -> Iterator[Release | CloseMarker]:
    """Every close marker, and each release of these keys inside the span once.

    A second payload for a known release is left out and noted; raises ConflictError where there is nowhere to note it.
    """
    seen: dict[bytes, bytes] = {}
    for stored in reader.read(SKETCHES):
        record = decode(stored.value)
        if isinstance(record, RollupRecord) or record.pipeline != pipeline:
            continue
        if isinstance(record, Release):
            if not _asked(record, span, keys):
                continue
            digest = payload_digest(stored.value)
            known = seen.setdefault(record.release_id, digest)
            if known is not digest:
                _leave_out(record, known == digest, left_out)
                continue
        yield record


def _leave_out(release: Release, is_copy: bool, left_out: LeftOut | None) -> None:
    if not is_copy and left_out is None:
        raise ConflictError(
            f"release {release.release_id.hex()} was published with two different payloads: a privacy incident. "
            "Keep the file, and do not publish it"
        )
    if left_out is not None and is_copy:
        left_out.duplicates += 1
    elif left_out is not None:
        left_out.conflicts.add(release.release_id)


def _rollups(
    reader: TopicReader, pipeline: str, span: Window | None, keys: set[bytes] | None
) -> Iterator[RollupRecord]:
    """Every published revision of these keys inside the span."""
    for stored in reader.read(ROLLUPS):
        record = decode(stored.value)
        if isinstance(record, RollupRecord) and record.pipeline == pipeline and _asked(record, span, keys):
            yield record


def _place(record: RollupRecord) -> bytes:
    """16 bytes for what a revision replaces; the length of a span tells its grain."""
    return release_id(record.pipeline, record.epoch, record.partition, record.window, record.key)


def _asked(record: Release | RollupRecord, span: Window | None, keys: set[bytes] | None) -> bool:
    return _inside(record.window, span) and (keys is None or record.key in keys)


def _inside(window: Window, span: Window | None) -> bool:
    return span is None or (span.start_ms <= window.start_ms and window.end_ms <= span.end_ms)
