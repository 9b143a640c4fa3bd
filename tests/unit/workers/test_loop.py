"""The loop of long-lived workers: what a turn that fails does, and that stopping never waits for the cluster."""

from __future__ import annotations

import logging
from threading import Event, Thread

import pytest

from sfm_stream.errors import BrokerAway, BrokerError, StateError
from sfm_stream.workers import loop
from sfm_stream.workers.loop import serve


class Scripted:
    """A worker whose calls do what they are told, in order, and nothing after that."""

    name = "scripted"

    def __init__(self, *turns: Exception | None, restarts: tuple[Exception, ...] = ()) -> None:
        self.turns, self.restarts = list(turns), list(restarts)
        self.calls: list[str] = []
        self.done, self.closed = Event(), Event()

    def tick(self, stopping) -> None:
        self.calls.append("tick")
        if not self.turns:
            self.done.set()
        elif (error := self.turns.pop(0)) is not None:
            raise error

    def look(self) -> None: ...

    def checkpoint(self) -> None: ...

    def restart(self) -> None:
        self.calls.append("restart")
        if self.restarts:
            raise self.restarts.pop(0)

    def close(self) -> None:
        self.closed.set()


class Stuck(Scripted):
    """A worker in a call that is never answered."""

    name = "stuck"

    def __init__(self) -> None:
        super().__init__()
        self.answer = Event()

    def tick(self, stopping) -> None:
        self.done.set()
        self.answer.wait()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(loop, "_PAUSE_S", 0.01)
    monkeypatch.setattr(loop, "_LEAVE_S", 0.2)


def test_a_turn_that_a_broker_spoils_is_followed_by_a_restart_until_one_succeeds():
    away = BrokerAway("gone")
    worker = Scripted(None, away, restarts=(away, away))
    serve([worker], worker.done.is_set)
    assert worker.calls[:6] == ["tick", "tick", "restart", "restart", "restart", "tick"]
    assert worker.closed.is_set()


@pytest.mark.parametrize("error", [BrokerError("refused"), StateError("lost"), ValueError()])
def test_another_error_ends_all_workers(error):
    worker, other = Scripted(error), Scripted()
    with pytest.raises(type(error)):
        serve([worker, other], lambda: False)
    assert worker.closed.is_set()
    assert other.closed.is_set()
    assert "restart" not in worker.calls


def test_a_worker_that_waits_for_the_cluster_is_left_behind(caplog):
    stuck, other = Stuck(), Scripted()
    try:
        with caplog.at_level(logging.WARNING):
            serve([stuck, other], lambda: stuck.done.is_set() and other.done.is_set())
        assert "stuck waits for the cluster and is left behind" in caplog.text
        assert other.closed.is_set()
        assert not stuck.closed.is_set()
    finally:
        stuck.answer.set()
    assert stuck.closed.wait(60)  # its answer came: it takes no further turn


def test_an_error_is_raised_though_another_worker_waits_for_the_cluster():
    stuck = Stuck()
    try:
        with pytest.raises(StateError):
            serve([stuck, Scripted(StateError("lost"))], lambda: False)
    finally:
        stuck.answer.set()


def test_one_that_is_left_behind_does_not_hold_up_the_end_of_the_process():
    stuck = Stuck()
    runner = Thread(target=serve, args=([stuck], stuck.done.is_set))
    runner.start()
    runner.join(60)
    assert not runner.is_alive()
    stuck.answer.set()
