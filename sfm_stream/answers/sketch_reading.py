"""The sketches of chosen releases, read and added up: many unions in one reading of the topic.

On a cluster each reading goes over the topic once. What is held does not grow with the number of releases.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from sfm_stream.answers.cover import Candidate
from sfm_stream.answers.joined_union import JoinedUnion
from sfm_stream.answers.key_union import KeyUnion
from sfm_stream.answers.published_records import release_of
from sfm_stream.errors import StateError
from sfm_stream.transport.contract import TopicReader
from sfm_stream.units import SKETCHES

Union: TypeAlias = KeyUnion | JoinedUnion

HELD_BYTES = 32 << 20
"""Of unions with their sums that are held at a time; of the next union where that takes more."""
PLACES = 1 << 19
"""Releases that are chosen and not read yet."""


class SketchReading:
    """Unions whose sketches are read together."""

    def __init__(self, reader: TopicReader) -> None:
        self._reader = reader
        self._unions: list[Union] = []
        self._held_bytes = 0
        self._places = array("q")
        """Of each release that is not read yet: partition, offset, and the number of its union."""

    @property
    def is_full(self) -> bool:
        return self._held_bytes > HELD_BYTES

    def add(self, union: Union, cover: Iterable[Sequence[Candidate]]) -> None:
        """Add a union, which takes each part of its cover."""
        self._unions.append(union)
        for part in cover:
            union.take(part)
            for each in part:
                self._places.extend((*each.place, len(self._unions) - 1))
            if len(self._places) >= 3 * PLACES:
                self._read()
        self._held_bytes += union.held_bytes

    def finish(self) -> list[Union]:
        """The unions with all of their sketches, in the order in which they were added; none is held any more.

        Raises StateError where a release is gone that was looked up.
        """
        self._read()
        finished, self._unions, self._held_bytes = self._unions, [], 0
        return finished

    def _read(self) -> None:
        """Include what was chosen, in order of the topic."""
        if not self._places:
            return
        places = np.frombuffer(self._places, np.int64).reshape(-1, 3)
        places, self._places = places[np.lexsort((places[:, 1], places[:, 0]))], array("q")
        partitions, begins = np.unique(places[:, 0], return_index=True)
        for partition, of_partition in zip(partitions.tolist(), np.split(places, begins[1:]), strict=True):
            offsets, numbers = (array("q", of_partition[:, column].tobytes()) for column in (1, 2))
            records = self._reader.at(SKETCHES, partition, offsets)
            for offset, number in zip(offsets, numbers, strict=True):
                stored = next(records, None)
                if stored is None or stored.offset != offset:
                    raise StateError("releases went out of the sketch topic while it was read for an answer: ask again")
                self._unions[number].sum.include(release_of(stored))
