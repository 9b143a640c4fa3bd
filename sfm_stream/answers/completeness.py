"""How far a pipeline has come: through when each released span is decided, and which partitions are behind."""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.answers.decided_spans import EpochSpans
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.settled import last_decided
from sfm_stream.errors import NothingFound
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import Window
from sfm_stream.windows.grid import grid_of


@dataclass(frozen=True, slots=True)
class DecidedSpan:
    """A released span of the newest epoch. through_ms: every partition that ever decided anything has decided what ends

    by then. last: the last window that is decided so; a release of it may have been withheld. None, both, where some
    partition has decided no window yet.
    """

    name: str
    through_ms: int | None
    last: Window | None


@dataclass(frozen=True, slots=True)
class OpenPartition:
    """A partition that is behind the furthest one. through_ms: how far it has come; None: it has decided nothing."""

    partition: int
    through_ms: int | None


@dataclass(frozen=True, slots=True)
class Completeness:
    """What is decided of the newest epoch, by its close markers.

    through_ms: everything that ends by then is decided, which is where --last ends; 0 for nothing. spans: the finest
    first. partitions: of the input. open: those behind the furthest in the finest span, in order.
    """

    epoch: int
    zone: str
    through_ms: int
    spans: tuple[DecidedSpan, ...]
    partitions: int
    open: tuple[OpenPartition, ...]


def completeness(reader: TopicReader, terms: ReleaseTerms) -> Completeness:
    """What is decided of a pipeline. Raises NothingFound where nothing is."""
    decided = last_decided(reader, terms.pipeline, terms.zone)
    if not decided.epochs:
        raise NothingFound(f"pipeline {terms.pipeline} has published nothing yet: no window of it is closed")
    number = max(decided.epochs)
    newest = decided.epochs[number]
    reached = {partition: window.end_ms for partition, window in newest.decided.get(newest.base, {}).items()}
    furthest = max(reached.values(), default=0)
    behind = (
        OpenPartition(partition, reached.get(partition))
        for partition in range(newest.partitions)
        if reached.get(partition, -1) < furthest
    )
    spans = tuple(_span(newest, name, terms.zone) for name in newest.names)
    return Completeness(number, terms.zone, decided.through_ms(), spans, newest.partitions, tuple(behind))


def _span(epoch: EpochSpans, name: str, zone: str) -> DecidedSpan:
    of_span, of_base = epoch.decided.get(name, {}), epoch.decided.get(epoch.base, {})
    if not of_span or of_base.keys() - of_span.keys():
        return DecidedSpan(name, None, None)
    through_ms = min(window.end_ms for window in of_span.values())
    return DecidedSpan(name, through_ms, Window(grid_of(name, zone).floor(through_ms - 1), through_ms))
