"""Where the clients of the model of Kafka run: each of their requests to a broker goes through a host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from support.fake_kafka_broker import FakeBroker

T = TypeVar("T")


class ClientHost(Protocol):
    """A process. live: its threads run."""

    @property
    def live(self) -> bool: ...

    def call(self, name: str, effect: Callable[[], T]) -> T:
        """One request to a broker; it may fail, or never come back."""
        ...

    def wait(self, seconds: float) -> None:
        """Nothing to do here for a while."""
        ...

    def fetches(self) -> int:
        """How many batches the next fetch brings at most."""
        ...


class Host:
    """A process that is never disturbed, on a cluster that does everything at once."""

    live = True

    def __init__(self, broker: FakeBroker) -> None:
        self._broker = broker

    def call(self, name: str, effect: Callable[[], T]) -> T:
        """One request to a broker."""
        result = effect()
        self._broker.write_markers()
        return result

    def wait(self, seconds: float) -> None:
        """Nothing to do here for a while."""
        self._broker.advance(seconds)
        self._broker.write_markers()

    def fetches(self) -> int:
        """How many batches the next fetch brings at most."""
        return 500
