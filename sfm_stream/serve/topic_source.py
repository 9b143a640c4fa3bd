"""A pipeline on a cluster: questions are answered from a copy of its public topics, which a thread makes and follows.

What the thread meets, and what follows::

    met                                      the copy                     questions
    nothing copied yet, or not all of it     goes on where it was         refused, with how far it is
    everything is copied once                is followed                  answered
    the cluster is away, the disk is full    stays as it is, tried again  answered; the problem is shown
    the file is gone or damaged              made anew                    refused until it is complete
    topics that were made anew               emptied, made anew           refused until it is complete
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from sfm_stream.answers.release_terms import release_terms
from sfm_stream.clock import monotonic_s
from sfm_stream.composition.kafka_cluster import cluster_of, topic_log
from sfm_stream.composition.kafka_names import names_of
from sfm_stream.config.config import Config
from sfm_stream.errors import BrokerError, SfmStreamError, StorageError
from sfm_stream.serve.reader_pool import ReaderPool, without_path
from sfm_stream.serve.refusals import NotNow
from sfm_stream.serve.served import ServedPipeline, ServedProgress
from sfm_stream.serve.topic_copy import TopicCopy, Topics
from sfm_stream.serve.turns import Turns
from sfm_stream.transport.files.topic_cache import CacheReader, DamagedCopy, TopicCache, remove_cache
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.transport.kafka.topics import facts
from sfm_stream.units import ROLLUPS, SKETCHES

_log = logging.getLogger(__name__)
_PAUSE_S = 1.0
"""Between two rounds."""
_AGAIN_S = 3.0
"""Before the cluster is tried again."""
_SAME_S = 10.0
"""How often it is looked whether the topics are still the same."""
_SHOWN_S = 5.0
"""How often a log line says how far a copy is that is being made."""


@contextmanager
def served_topics(config: Config, turns: Turns) -> Iterator[ServedPipeline]:
    """A pipeline on a cluster, for this block. The cluster need not be there yet.

    Raises ConfigError, StateError or StorageError where the copy cannot be opened for writing.
    """
    source = _TopicSource(config, turns)
    thread = Thread(target=source.run, name=f"copy of {config.pipeline.id}", daemon=True)
    thread.start()
    try:
        yield ServedPipeline(config, release_terms(config), source.reader, source.progress, source.log_end)
    finally:
        source.stop.set()
        thread.join()
        source.close()


class _TopicSource:
    """The copy of one pipeline. The thread that runs run() is the only one that writes."""

    def __init__(self, config: Config, turns: Turns) -> None:
        self._config, self._pipeline = config, config.pipeline.id
        path = config.folder / Path(config.settings.serve.cache) / f"{self._pipeline}.topics.sqlite"
        self._path = str(path)
        self._cache = TopicCache(self._path)
        self._pool = ReaderPool(self._pipeline, self._path, CacheReader, turns)
        self._copy: TopicCopy | None = None
        self._ready, self._life = False, 0
        self._progress, self._mark = ServedProgress(False, problem="starting"), ""
        self._distrusted = Event()
        self._next_same_s = self._next_shown_s = 0.0
        self.stop = Event()

    @contextmanager
    def reader(self) -> Iterator[CacheReader]:
        """As ServedPipeline.reader. Raises NotNow while the copy is not complete."""
        life = self._require_ready()
        try:
            with self._pool.reader() as reader:
                yield reader  # type: ignore[misc]  # the pool opens no others
        except DamagedCopy as error:
            _log.warning("%s", error)
            self._distrusted.set()
            raise NotNow(f"the copy of the topics of {self._pipeline} is damaged and made anew: ask later") from None
        if self._require_ready() != life:
            raise NotNow(f"the copy of the topics of {self._pipeline} was made anew meanwhile: ask again")

    def progress(self) -> ServedProgress:
        return self._progress

    def log_end(self) -> str:
        self._require_ready()
        return f"{self._life} {self._mark}"

    def close(self) -> None:
        self._pool.close()
        self._cache.close()

    def run(self) -> None:
        """Copy and follow until stop is set."""
        while not self.stop.is_set():
            try:
                with topic_log(self._config) as log:
                    self._copy = None
                    while not self.stop.is_set():
                        self._round(log)
                        self.stop.wait(_PAUSE_S)
            except DamagedCopy as error:
                self._distrusted.set()
                self._note(str(error))
            except (BrokerError, StorageError, NotNow) as error:
                self._note(str(error))
            except SfmStreamError as error:
                self._note(str(error))
                _log.error("%s is not followed any more: %s", self._pipeline, error)
            except Exception:
                self._note("an unexpected error, which the log of the server has")
                _log.exception("the copy of a pipeline failed")
            self.stop.wait(_AGAIN_S)

    def _round(self, log: TopicLog) -> None:
        if self._distrusted.is_set() or not self._cache.is_there:
            self._make_anew()
        now = monotonic_s()
        if self._copy is None or now >= self._next_same_s:
            topics = self._topics()
            if self._copy is None or self._copy.topics != topics:
                self._begin(topics, log)
            self._next_same_s = now + _SAME_S
        assert self._copy is not None
        if not self._copy.follow(self.stop.is_set):
            _log.warning("the topics of %s end before what was copied of them: they are copied anew", self._pipeline)
            self._empty()
            return
        if self.stop.is_set():
            return
        if not self._ready:
            _log.info("the copy of the topics of %s is complete", self._pipeline)
        self._ready = True
        self._moved()

    def _topics(self) -> Topics:
        """The topics as they are now. Raises NotNow where one is not there yet, BrokerError."""
        names = names_of(self._config)
        real = {SKETCHES: names.sketches, ROLLUPS: names.rollups}
        found = facts(cluster_of(self._config), real.values())
        if missing := sorted(set(real.values()) - found.keys()):
            raise NotNow(f"topics {', '.join(missing)} do not exist: no worker of this pipeline has started yet")
        return Topics(real, {topic: f"{topic} {name} {found[name].topic_id}" for topic, name in real.items()})

    def _begin(self, topics: Topics, log: TopicLog) -> None:
        """Go on with what is copied of these topics. What is copied of others goes."""
        if set(self._cache.workers()) - set(topics.sources.values()):
            _log.warning("the topics of %s are others than were copied: they are copied anew", self._pipeline)
            self._empty()
        self._copy = TopicCopy(self._cache, topics, log, self._moved)

    def _empty(self) -> None:
        self._forget()
        self._cache.clear()

    def _make_anew(self) -> None:
        _log.warning("the copy of the topics of %s is gone or damaged, and made anew", self._pipeline)
        self._forget()
        is_there = self._cache.is_there
        self._cache.close()
        if is_there:
            remove_cache(self._path)
        self._cache = TopicCache(self._path)
        self._distrusted.clear()

    def _forget(self) -> None:
        """Answer nothing until a copy is complete again."""
        self._ready, self._copy = False, None
        self._life += 1
        self._pool.close()

    def _moved(self) -> None:
        if self._copy is not None:
            self._mark = self._copy.mark()
            self._progress = ServedProgress(self._ready, self._copy.done, self._copy.wanted)
        if not self._ready and monotonic_s() >= self._next_shown_s:
            _log.info("the topics of %s are being copied: %s", self._pipeline, self._how_far())
            self._next_shown_s = monotonic_s() + _SHOWN_S

    def _note(self, problem: str) -> None:
        """Show what is wrong, and log it once."""
        before, shown = self._progress, without_path(problem, self._path, self._pipeline)
        if before.problem != shown:
            _log.warning("%s: %s", self._pipeline, problem)
        self._progress = ServedProgress(self._ready, before.done, before.wanted, shown)

    def _how_far(self) -> str:
        progress = self._progress
        share = 100 * progress.done // progress.wanted if progress.wanted else 0
        return f"{progress.done} of {progress.wanted} offsets, {share} %"

    def _require_ready(self) -> int:
        if not self._ready:
            problem = f" ({self._progress.problem})" if self._progress.problem else ""
            raise NotNow(f"the topics of {self._pipeline} are being copied, {self._how_far()}: ask later{problem}")
        return self._life
