"""A process of the model: a real worker in a thread that runs only while it has the baton, and the harm done to it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import kafka.errors as kafka_errors
import numpy as np
from support.fake_kafka import FakeCluster
from support.kafka_runs import BUCKETS, LEVELS

from sfm_stream.composition import kafka as composition
from sfm_stream.errors import BrokerAway, BrokerError, SfmStreamError
from sfm_stream.transport.kafka.cluster import Cluster

T = TypeVar("T")
WRITES = {"add", "produce", "offsets", "end"}
"""Requests of a producer, which may reach the broker after the client gave up."""
STALLS_S = {"pause": 1.0, "stall": 7.0, "sleep": 10.0, "coma": 40.0}
"""Shorter than a session of 6 s, longer, and longer than a transaction of 20 s may last."""


class Crash(BaseException):
    """The process is gone; what it had in memory with it."""


class MarkingCoins:
    """No coin comes up, but in the last level, which no item reaches: there each draw is another one."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def digits(self, count: int) -> Any:
        drawn = np.full(count, 255, np.uint8)
        buckets = count // LEVELS
        if count % LEVELS == 0 and buckets in (BUCKETS, BUCKETS // 2):
            drawn[-buckets:] = np.where(np.frombuffer(self._rng.randbytes(buckets), np.uint8) < 128, 0, 255)
        return drawn


def held() -> threading.Lock:
    """A baton that nobody may take yet."""
    baton = threading.Lock()
    baton.acquire()
    return baton


class Process:
    """One worker, and the Host of its clients."""

    def __init__(self, world: Any, role: str) -> None:
        self.world, self.role = world, role
        world.started += 1
        self.number = world.started
        self.baton = held()
        self.dead = self.ended = self.leaving = False
        self.stalled = 0
        self.kafka: Cluster = FakeCluster(session_ms=6_000, transaction_ms=20_000, broker=world.cluster, host=self)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    # As a Host

    @property
    def live(self) -> bool:
        return not (self.dead or self.stalled)

    def call(self, name: str, effect: Callable[[], T]) -> T:
        world = self.world
        if self.dead:
            raise Crash
        fault = world.fault(name)
        kind, _, after = fault.partition("-")
        if kind and not after:
            self._suffer(name, kind, effect)
        result = effect()
        if kind == "unknown":
            raise kafka_errors.KafkaTimeoutError("the answer is lost")
        if after:
            self._suffer(name, kind, effect)
        world.background()
        if world.rng.random() < world.restless:
            self.switch()
        return result

    def wait(self, seconds: float) -> None:
        self.world.cluster.advance(seconds)
        for _ in range(3):
            self.world.background()
        if self.world.rng.random() < 0.7:
            self.switch()

    def fetches(self) -> int:
        fetches: int = self.world.rng.choice((1, 2, 5, 100))
        return fetches

    # As a thread

    def switch(self) -> None:
        """Let the others go on."""
        self.world.baton.release()
        self.baton.acquire()
        self.world.running = self
        if self.dead:
            raise Crash

    def _suffer(self, name: str, kind: str, effect: Callable[[], Any]) -> None:
        world = self.world
        world.suffered[kind] += 1
        if kind == "crash":
            self.dead = True
            raise Crash
        if kind in STALLS_S:
            self.stalled = world.rng.choice((3, 8, 20))
            world.cluster.advance(STALLS_S[kind])
            while self.stalled:
                self.switch()
        elif kind == "late":
            if name in WRITES:
                world.late.append(effect)
            raise kafka_errors.KafkaTimeoutError("no answer yet")
        elif kind == "error":
            raise kafka_errors.KafkaConnectionError("not sent")

    def _run(self) -> None:
        self.baton.acquire()
        self.world.running = self
        try:
            if not self.dead:
                self._work()
        except Crash:
            pass
        except BrokerError:
            self.world.suffered["gave up"] += 1
        except SfmStreamError as error:
            self.world.violation = self.world.violation or error
        except BaseException as error:
            self.world.violation = self.world.violation or error
        finally:
            self.ended = True
            if self.dead:
                members = self.world.cluster.members
                members[:] = [member for member in members if member.host is not self]
            self.world.baton.release()

    def _work(self) -> None:
        """As app.service runs it."""
        world = self.world
        if self.role == "ingest":
            service = composition.open_ingest(world.config, True, world.coins)
        else:
            service = composition.open_outbox(world.config)
        try:
            while not self.leaving:
                try:
                    service.tick(lambda: False)
                    if world.rng.random() < 0.1:
                        service.checkpoint()
                except BrokerAway:
                    world.suffered["went on"] += 1
                    service.restart()
                    self.wait(1)
                self.switch()
        finally:
            world.suffered["restored"] += service.transport.restored
            with suppress(SfmStreamError):
                service.close()
