"""The keys of one pipeline in one output file, held from one question to the next: only what came since is read."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock

from sfm_stream.answers.known_keys import encoded_keys
from sfm_stream.answers.published_records import release_head
from sfm_stream.transport.contract import TopicReader
from sfm_stream.transport.files.log_reader import PAGE_RECORDS, LogReader
from sfm_stream.types import StoredRecord
from sfm_stream.units import SKETCHES
from sfm_stream.wire.keys import MARKER_KEY


@dataclass(slots=True)
class _Found:
    """Keys in the order of their bytes, and of each partition the last record and release that are reckoned in.

    Close markers of another file may be the same, the noise of a release is not.
    """

    life: object
    last: dict[int, StoredRecord]
    releases: dict[int, StoredRecord]
    ordered: list[bytes]
    known: set[bytes] = field(default_factory=set)

    def reach(self, partition: int, page: Sequence[StoredRecord]) -> None:
        """These records of a partition are reckoned in."""
        self.last[partition] = page[-1]
        for each in page:
            if each.key != MARKER_KEY:
                self.releases[partition] = each


class HeldKeys:
    """The published keys of a pipeline. Safe to share by threads.

    life: which file there is. Another one is read anew, and so is one in which the last records that were read are not
    what they were.
    """

    def __init__(self, pipeline: str, life: Callable[[], object]) -> None:
        self._pipeline, self._life = pipeline, life
        self._found: _Found | None = None
        self._lock = Lock()

    def behind(self, reader: TopicReader, after: bytes) -> Sequence[bytes]:
        """Canonical bytes of the keys with a release that follow a key, in order; reads what came since the last call.

        Raises what reading raises, and is then as it was.
        """
        assert isinstance(reader, LogReader)
        with self._lock:
            life, found = self._life(), self._found
            if found is None or found.life != life or not _is_continued(reader, found):
                found = self._read(reader, life)
            self._follow(reader, found)
            self._found = found
            return found.ordered[bisect_right(found.ordered, after) :]

    def _read(self, reader: LogReader, life: object) -> _Found:
        # The ends first: what comes meanwhile is looked at again.
        found = _Found(life, {}, {}, [])
        for partition in reader.partitions(SKETCHES):
            end = reader.end_offset(SKETCHES, partition)
            found.reach(partition, reader.page(SKETCHES, partition, max(0, end - PAGE_RECORDS), PAGE_RECORDS))
        found.ordered = list(encoded_keys(reader, self._pipeline))
        found.known.update(found.ordered)
        return found

    def _follow(self, reader: LogReader, found: _Found) -> None:
        """Reckon in what came since. What is reckoned in twice is nothing new."""
        for partition in reader.partitions(SKETCHES):
            at = found.last[partition].offset + 1 if partition in found.last else 0
            while page := reader.page(SKETCHES, partition, at, PAGE_RECORDS):
                for stored in page:
                    if stored.key not in found.known and self._is_own(stored):
                        insort(found.ordered, stored.key)
                        found.known.add(stored.key)
                found.reach(partition, page)
                at = page[-1].offset + 1

    def _is_own(self, stored: StoredRecord) -> bool:
        head = release_head(stored)
        return head is not None and head.pipeline == self._pipeline


def _is_continued(reader: LogReader, found: _Found) -> bool:
    places = [*found.last.items(), *found.releases.items()]
    return all(reader.page(SKETCHES, partition, each.offset, 1) == [each] for partition, each in places)
