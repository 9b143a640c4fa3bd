"""When a partition counts as read to its end: what comes of the answers to queries for log ends."""

from __future__ import annotations

import pytest

from sfm_stream.transport.kafka import idle_ends
from sfm_stream.transport.kafka.cluster_values import LogEndQuery
from sfm_stream.transport.kafka.idle_ends import IdleEnds
from sfm_stream.types import NO_TIME


class Answers:
    """A TopicLog whose queries the test answers."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.queries: list[LogEndQuery] = []
        self.now_s, self.high = 1000.0, {0: 5, 1: 5}
        patch.setattr(idle_ends, "monotonic_s", lambda: self.now_s)
        patch.setattr(idle_ends, "now_ms", lambda: int(self.now_s * 1000))
        self.idle = IdleEnds(self, "t")  # type: ignore[arg-type]
        self.at = {0: 5, 1: 5}

    def ask_log_ends(self, topic: str, partitions: list[int]) -> LogEndQuery:
        self.queries.append(LogEndQuery(partitions))
        return self.queries[-1]

    def ends(self, topic: str, partitions: list[int], *, stable: bool) -> dict[int, int]:
        return {partition: self.high[partition] for partition in partitions}

    def turn(self, seconds: float = 0.0) -> list[tuple[int, int, int | None]]:
        self.now_s += seconds
        found = self.idle.reached(self.at, self.at.__getitem__)
        return [(end.partition, end.asked_ms, end.next_offset) for end in found]

    def tell(self, **ends: int) -> None:
        query = self.queries[-1]
        for name, end in ends.items():
            number = int(name.removeprefix("p"))
            query.told[number] = end
            del query.why[number]
        if not query.why:
            query.over.set()


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    return Answers(monkeypatch)


def test_an_end_counts_from_before_it_was_asked_for(answers: Answers) -> None:
    assert answers.turn() == []
    answers.tell(p0=5, p1=9)
    assert answers.turn(0.5) == [(0, 1_000_000, 5)]
    answers.at[1] = 11
    assert answers.turn(30) == [(1, 1_000_000, 11)]


def test_a_partition_that_is_told_does_not_wait_for_another_one(answers: Answers) -> None:
    answers.turn()
    answers.tell(p0=5)
    assert answers.turn(0.2) == [(0, 1_000_000, 5)]
    assert answers.turn(2) == []
    assert len(answers.queries) == 1
    answers.turn(5)  # long enough: what is missing is asked for anew, and what has been read since
    answers.turn()
    assert len(answers.queries) == 2
    assert sorted(answers.queries[-1].why) == [0, 1]


def test_an_answer_to_what_was_asked_before_an_assignment_is_not_taken(answers: Answers) -> None:
    """The worker may begin further back than where the partition was taken up."""
    answers.turn()
    answers.idle.forget(0)
    answers.tell(p0=5, p1=5)
    assert answers.turn() == [(1, 1_000_000, 5)]
    answers.turn(2)
    answers.idle.forget()
    answers.tell(p0=5, p1=5)
    assert answers.turn() == []


def test_where_log_ends_are_not_told_no_time_is_known(answers: Answers) -> None:
    answers.turn()
    answers.queries[-1].refused.add(0)
    answers.queries[-1].over.set()
    assert answers.turn() == [(0, NO_TIME, 5)]


def test_an_end_before_what_was_read_is_none(answers: Answers) -> None:
    answers.turn()
    answers.tell(p0=4, p1=5)
    assert answers.turn() == [(0, NO_TIME, 5), (1, 1_000_000, 5)]


def test_the_log_says_once_that_an_end_is_not_known(answers: Answers, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(30):
        answers.turn(5)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == 2
    assert "partition 1: its log end cannot be found out (no answer yet)" in said[1]
    answers.tell(p0=5, p1=5)
    answers.turn()
    for _ in range(30):
        answers.turn(5)
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 4
