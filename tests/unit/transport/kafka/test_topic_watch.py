"""When a worker's topics are looked at, and what ends it: two looks that found the same, never a silent cluster."""

from __future__ import annotations

import threading

import pytest

from sfm_stream.errors import BrokerAway, BrokerError, StateError
from sfm_stream.transport.kafka import topic_watch
from sfm_stream.transport.kafka.topic_watch import CONFIRM_S, EVERY_S, TopicWatch

AWAY = BrokerAway("no answer")


class Looks:
    """What each look brings, in turn; then nothing any more. now_s: the clock of the watch."""

    def __init__(self, patch: pytest.MonkeyPatch, *answers: list[str] | BrokerError) -> None:
        self.answers, self.taken, self.now_s = list(answers), 0, 0.0
        patch.setattr(topic_watch, "monotonic_s", lambda: self.now_s)
        self.watch = TopicWatch(self.look)

    def look(self) -> list[str]:
        self.taken += 1
        answer = self.answers.pop(0) if self.answers else []
        if isinstance(answer, BrokerError):
            raise answer
        return answer

    def after(self, seconds: float) -> None:
        """A turn then, and one with the answer to what it asked."""
        self.now_s += seconds
        self.watch.tick()
        asked = self.watch._answer
        if asked is not None:
            asked.exception()  # waits for it
            self.watch.tick()


def test_nothing_is_asked_before_it_is_time(monkeypatch):
    looks = Looks(monkeypatch)
    looks.after(EVERY_S - 1)
    assert looks.taken == 0
    looks.after(1)
    assert looks.taken == 1
    looks.after(EVERY_S - 1)
    assert looks.taken == 1
    looks.after(1)
    assert looks.taken == 2


def test_a_change_ends_the_worker_once_it_is_confirmed(monkeypatch):
    looks = Looks(monkeypatch, ["gone"], ["gone"])
    looks.after(EVERY_S)
    looks.after(CONFIRM_S - 1)
    assert looks.taken == 1
    with pytest.raises(StateError, match=r"\Agone\Z"):
        looks.after(1)


def test_a_change_is_found_and_confirmed_within_a_minute():
    assert 2 * CONFIRM_S + EVERY_S < 60


def test_what_one_broker_said_once_ends_nothing(monkeypatch):
    looks = Looks(monkeypatch, ["gone"], [], ["gone"], ["moved"], ["moved"])
    for wait_s in (EVERY_S, CONFIRM_S, EVERY_S, CONFIRM_S):
        looks.after(wait_s)
    with pytest.raises(StateError, match="moved"):
        looks.after(CONFIRM_S)


@pytest.mark.parametrize("silence", [AWAY, BrokerError("it may not be asked")])
def test_a_cluster_that_does_not_answer_says_nothing(monkeypatch, silence):
    looks = Looks(monkeypatch, *[silence] * 9, ["gone"], silence, ["gone"])
    looks.after(EVERY_S)
    for _ in range(10):
        looks.after(CONFIRM_S)
    with pytest.raises(StateError, match="gone"):
        looks.after(CONFIRM_S)


def test_a_turn_does_not_wait_for_the_answer(monkeypatch):
    answered = threading.Event()
    looks = Looks(monkeypatch)
    monkeypatch.setattr(looks.watch, "_look", lambda: [] if answered.wait(300) else ["waited"])
    looks.now_s = EVERY_S
    for _ in range(5):
        looks.watch.tick()
    asked = looks.watch._answer
    assert asked is not None
    assert not asked.done()
    answered.set()
    assert asked.result() == []
    looks.watch.tick()
    assert looks.watch._answer is None


def test_a_fault_of_ours_is_not_hidden(monkeypatch):
    looks = Looks(monkeypatch)
    monkeypatch.setattr(looks.watch, "_look", lambda: [][0])
    with pytest.raises(IndexError):
        looks.after(EVERY_S)


@pytest.mark.parametrize("kind", [BrokerError, StateError])
def test_an_error_that_ends_the_worker_is_explained_by_a_change(monkeypatch, kind):
    looks = Looks(monkeypatch, ["made again"])
    with pytest.raises(StateError, match="made again") as raised, looks.watch.explaining():
        raise kind("truncated")
    assert isinstance(raised.value.__cause__, kind)


@pytest.mark.parametrize("kind", [BrokerError, StateError])
@pytest.mark.parametrize("answer", [[], AWAY])
def test_an_error_that_no_change_explains_stays(monkeypatch, answer, kind):
    looks = Looks(monkeypatch, answer)
    with pytest.raises(kind, match="refused"), looks.watch.explaining():
        raise kind("refused")


def test_a_broker_that_is_away_is_not_looked_into(monkeypatch):
    looks = Looks(monkeypatch, ["made again"])
    with pytest.raises(BrokerAway), looks.watch.explaining():
        raise AWAY
    assert looks.taken == 0
