"""Workers of a pipeline in a thread of the test, on a real cluster: how they end, and what they say then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from support.kafka_runs import wait_until
from support.patience import PATIENCE_S

from sfm_stream.composition.kafka import open_ingest, open_outbox, open_rollup
from sfm_stream.composition.kafka_service import Service
from sfm_stream.config.config import load_config
from sfm_stream.workers.loop import serve


class NoCoins:
    """No coin comes up: a release shows what was counted."""

    def digits(self, count: int) -> NDArray[np.uint8]:
        return np.full(count, 255, np.uint8)


class Serving:
    """One run of `serve`. error: what it raised, once it has ended."""

    def __init__(self, services: Sequence[Service]) -> None:
        self.services = services
        self.error: BaseException | None = None
        self._halt = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            serve(self.services, self._halt.is_set)
        except BaseException as error:
            self.error = error

    def await_joined(self) -> None:
        """Every worker is a member of its group and has partitions."""
        wait_until(
            lambda: all(s.joined and s.observed.progress for s in self.services) or self.error is not None, PATIENCE_S
        )
        assert self.error is None, self.error

    def await_error(self) -> BaseException:
        """What it ended with, by itself."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "it still runs"
        assert self.error is not None
        return self.error

    def stop(self) -> None:
        self._halt.set()
        self._thread.join(PATIENCE_S)


@contextmanager
def serving(config: Path, *roles: str, first: bool = False) -> Iterator[Serving]:
    """Workers of these roles; ingest, publish or rollup. The block ends when they have."""
    loaded = load_config(config)
    make: dict[str, Callable[[], Service]] = {
        "ingest": lambda: open_ingest(loaded, first, NoCoins()),
        "publish": lambda: open_outbox(loaded),
        "rollup": lambda: open_rollup(loaded),
    }
    run = Serving([make[role]() for role in roles])
    try:
        yield run
    finally:
        run.stop()
