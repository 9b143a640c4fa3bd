"""A pipeline as it is served: its configuration, and readers of what it has published."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sfm_stream.answers.known_keys import HeldKeys
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.config.config import Config
from sfm_stream.transport.contract import TopicReader


@dataclass(frozen=True, slots=True)
class ServedProgress:
    """How far a pipeline can be read.

    ready: whether questions are answered; not while a cache is built, nor where nothing is published yet. done, wanted:
    offsets of the public topics that are in the cache, of those that are in the topics; 0 of a file. problem: why it
    is not ready, or what has kept the cache from following since; "" where nothing is wrong.
    """

    ready: bool
    done: int = 0
    wanted: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ServedPipeline:
    """A pipeline that questions are answered about.

    reader: a reader for one question, to be used by one thread at a time. progress: how far it can be read now; asks no
    cluster. log_end: a text that changes when anything is published, and never comes back to what it was. held_keys:
    whence published keys are taken, where a reader would read its whole history for them.
    """

    config: Config
    terms: ReleaseTerms
    reader: Callable[[], AbstractContextManager[TopicReader]]
    progress: Callable[[], ServedProgress]
    log_end: Callable[[], str]
    held_keys: HeldKeys | None = None
