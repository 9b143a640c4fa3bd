"""Workers on the model of Kafka under thousands of schedules: each release is public once, in one form, and whole.

SFM_MODEL_EXAMPLES sets how many schedules are tried (1000 by default, some 80 seconds); a long run finds rarer ones.
"""

from __future__ import annotations

import logging
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from support.kafka_model import STAGE, Schedule, Violation, World
from support.kafka_model_oracle import judge, require_exactly_once, require_one_payload
from support.kafka_model_process import STALLS_S, WRITES

from sfm_stream.composition import kafka as composition
from sfm_stream.composition.kafka_names import Names
from sfm_stream.events.placement import Placement
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.pipeline.counting.span_counter import SpanCounter
from sfm_stream.transport.kafka import transactions
from sfm_stream.transport.kafka.cluster_values import LogEndQuery
from sfm_stream.transport.kafka.kafka_python.hooks import group_membership
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.transport.kafka.transport import KafkaTransport
from sfm_stream.units import FOREVER_MS

EXAMPLES = int(os.environ.get("SFM_MODEL_EXAMPLES", "1000"))
FEW = settings(
    max_examples=600,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
HARM = ["error", "unknown", "late", "crash", "crash-after", *STALLS_S, *(f"{name}-after" for name in STALLS_S)]
REQUESTS = st.one_of(
    st.tuples(st.sampled_from(sorted(WRITES)), st.integers(1, 20)),
    st.tuples(st.sampled_from(sorted(WRITES)), st.integers(1, 20)),
    st.tuples(
        st.sampled_from(["init", "poll", "list", "log end", "committed", "metadata", "groups"]), st.integers(1, 40)
    ),
)


EVENTS = st.sampled_from(["forget", "move", "join", "leave", "rush", "hold", "hold input"])


Focus = tuple[str, Sequence[str]]
"""A kind of request, and what happens to it."""
STALLS = [name for name in HARM if name.partition("-")[0] in STALLS_S]


@st.composite
def schedules(draw: st.DrawFn, focus: Focus | None = None) -> Schedule:
    """Harm of all kinds; or one or two things that happen to workers which have others beside them. focus: to these."""
    few = focus is not None or draw(st.booleans())
    request, harm = focus or (draw(st.sampled_from(["end", "offsets", "produce"])), [*STALLS, "unknown", "late"])
    little = st.dictionaries(
        st.tuples(st.just(request), st.integers(1, 20)), st.sampled_from(harm), min_size=1, max_size=2
    )
    much = st.dictionaries(REQUESTS, st.sampled_from(HARM), min_size=1, max_size=10)
    return Schedule(
        seed=draw(st.integers(0, 1 << 32)),
        partitions=draw(st.integers(2 if few else 1, 3)),
        ingests=draw(st.integers(2 if few else 1, 3)),
        publishers=draw(st.integers(1, 2)),
        turns=60 if few else draw(st.sampled_from([20, 40, 60])),
        faults=draw(little if few else much),
        events=draw(st.dictionaries(st.integers(0, 50), EVENTS, max_size=1 if few else 3)),
    )


@pytest.fixture(autouse=True)
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        STAGE.set(patch)
        patch.setattr(logging.root.manager, "disable", logging.CRITICAL)
        yield patch


@st.composite
def schedules_without_an_answer(draw: st.DrawFn) -> Schedule:
    """A transaction of unknown outcome, and then a coordinator that is away when it is asked."""
    faults = {("end", draw(st.integers(1, 12))): "unknown"}
    faults |= {("init", number): "error" for number in draw(st.sets(st.integers(2, 8), min_size=1, max_size=6))}
    return Schedule(
        seed=draw(st.integers(0, 1 << 32)),
        partitions=draw(st.integers(1, 2)),
        ingests=1,
        publishers=1,
        turns=60,
        faults=faults,
        events={},
    )


@st.composite
def schedules_with_a_slow_replica(draw: st.DrawFn) -> Schedule:
    """Nothing happens but that the high watermark of the input stands, again and again."""
    turns = draw(st.sets(st.integers(0, 50), min_size=1, max_size=6))
    return Schedule(
        seed=draw(st.integers(0, 1 << 32)),
        partitions=draw(st.integers(1, 2)),
        publishers=1,
        turns=60,
        pace=4.0,
        events=dict.fromkeys(turns, "hold input"),
    )


def check(schedule: Schedule) -> World:
    world = World(schedule)
    world.run()
    judge(world)
    return world


TWICE = "committed twice|a marker from|a release behind|behind the close marker|a close marker of epoch|two payloads"
STUCK = "not everything is published"


def found(
    what: str,
    look: Callable[[Schedule], object] = check,
    source: st.SearchStrategy[Schedule] = schedules(),  # noqa: B008 -- a strategy, which nothing changes
) -> bool:
    """Whether some schedule of the source brings to light what this pattern says."""

    def fails(schedule: Schedule) -> bool:
        try:
            look(schedule)
        except Violation as violation:
            return re.search(what, str(violation)) is not None
        return False

    try:
        find(source, fails, settings=FEW, random=random.Random(1))
    except NoSuchExample:
        return False
    return True


def test_every_release_is_public_once_in_one_form_and_whole() -> None:
    seen: Counter[str] = Counter()

    @settings(FEW, max_examples=EXAMPLES, phases=[Phase.generate, Phase.shrink])
    @given(schedules())
    def explore(schedule: Schedule) -> None:
        world = check(schedule)
        seen.update(world.suffered)
        seen.update(world.cluster.counts)
        seen["thrown out"] += sum(group.lost for group in world.cluster.groups.values())
        seen["schedules"] += 1

    explore()
    # Schedules that disturb nothing would find nothing.
    least = {"aborted": 0.7, "timed out": 0.3, "fenced": 0.4, "thrown out": 0.6, "stale commits": 0.15}
    least |= {"crash": 0.06, "unknown": 0.03, "arrived late": 0.015, "restored": 0.007}
    for what, share in least.items():
        assert seen[what] >= share * seen["schedules"], seen


def test_a_coordinator_that_is_away_after_an_unknown_outcome_is_asked_again() -> None:
    seen: Counter[str] = Counter()

    @settings(FEW, max_examples=EXAMPLES // 5, phases=[Phase.generate, Phase.shrink])
    @given(schedules_without_an_answer())
    def explore(schedule: Schedule) -> None:
        seen.update(check(schedule).suffered)
        seen["schedules"] += 1

    explore()
    assert seen["went on"] >= 0.3 * seen["schedules"], seen
    assert not seen["gave up"], seen


def test_each_declared_key_has_its_release_in_every_window_of_the_partition_that_owns_it() -> None:
    @settings(FEW, max_examples=EXAMPLES // 10, phases=[Phase.generate, Phase.shrink])
    @given(schedules())
    def explore(schedule: Schedule) -> None:
        check(replace(schedule, declared=True))

    explore()


def test_hours_and_a_day_of_a_zone_are_public_once_and_whole() -> None:
    """The day has 23.5 hours: clocks change in it. Some events count for it that came too late for their hour.

    Under every other schedule keys are declared.
    """
    seen: Counter[str] = Counter()

    @settings(FEW, max_examples=EXAMPLES // 30, phases=[Phase.generate, Phase.shrink])
    @given(schedules())
    def explore(schedule: Schedule) -> None:
        world = check(replace(schedule, days=True, declared=schedule.seed % 2 == 1))
        seen.update(world.suffered)
        seen.update(world.cluster.counts)
        seen["thrown out"] += sum(group.lost for group in world.cluster.groups.values())
        seen["schedules"] += 1

    explore()
    for what, share in {"aborted": 0.5, "fenced": 0.3, "thrown out": 0.4}.items():
        assert seen[what] >= share * seen["schedules"], seen


def test_events_that_are_appended_and_not_readable_yet_are_counted() -> None:
    @settings(FEW, max_examples=EXAMPLES // 5, phases=[Phase.generate, Phase.shrink])
    @given(schedules_with_a_slow_replica())
    def explore(schedule: Schedule) -> None:
        check(schedule)

    explore()


def test_a_partition_must_not_release_declared_keys_of_another(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Placement, "owns", lambda placement, key: True)
    assert found("not expected", lambda schedule: check(replace(schedule, partitions=2, declared=True)))


def days(schedule: Schedule) -> World:
    return check(replace(schedule, days=True))


def test_a_position_has_to_wait_for_the_day(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SpanCounter, "expect", lambda span, opened: None)
    assert found("with other cells|missing", days)


def test_a_day_has_to_wait_for_what_is_inside_it(patch: pytest.MonkeyPatch) -> None:
    def longest_first(counter: WindowCounter) -> tuple[SpanCounter | None, int]:
        due = [span for span in reversed(counter.spans) if span.first_due]
        return (due[0], FOREVER_MS) if due else (None, 0)

    patch.setattr(WindowCounter, "_next_span", longest_first)
    assert found("before those inside it|with other cells|missing", days)


def test_a_high_watermark_must_not_be_taken_for_all_that_was_appended(patch: pytest.MonkeyPatch) -> None:
    def high_watermarks(log: TopicLog, topic: str, partitions: Iterable[int]) -> LogEndQuery:
        query = LogEndQuery(partitions)
        query.told, query.why = log.ends(topic, list(query.why), stable=False), {}
        query.over.set()
        return query

    patch.setattr(TopicLog, "ask_log_ends", high_watermarks)
    assert found("with other cells|missing", source=schedules_with_a_slow_replica())


def test_without_the_outbox_two_draws_of_a_release_can_be_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Names, "outbox", property(lambda names: names.sketches))
    patch.setattr(STAGE, "outbox_is_public", True)

    def look(schedule: Schedule) -> None:
        world = World(replace(schedule, publishers=0))
        world.run()
        require_exactly_once(world, "sketches")  # that much holds: only what was aborted tells
        require_one_payload(world)

    assert found("two payloads", look)


def test_a_transaction_of_unknown_outcome_must_not_be_taken_for_aborted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KafkaTransport, "_settled", lambda self, *_: self._transactions.settle() is None)
    assert found(TWICE, source=schedules(("end", ["unknown"])))


def test_what_was_in_hand_must_not_be_kept_where_the_outcome_stays_unknown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KafkaTransport, "restart", lambda self: None)
    assert found(TWICE, source=schedules_without_an_answer())


def test_a_successor_has_to_wait_for_what_is_undecided(patch: pytest.MonkeyPatch) -> None:
    class Hasty(TopicLog):
        def log_ends(self, topic: str, partitions: Iterable[int], patience_s: float = 0) -> dict[int, int]:
            decided = self.ends(topic, partitions, stable=True)
            begun = topic.endswith(".ledger") and all(decided.values())
            return decided if begun else super().log_ends(topic, partitions)

    patch.setattr(composition, "TopicLog", Hasty)
    assert found(TWICE, source=schedules(("end", STALLS)))


def test_records_have_to_be_in_the_log_before_the_offsets(patch: pytest.MonkeyPatch) -> None:
    def turned(sender, records, offsets, membership, before_commit):
        sender.begin()
        if offsets:
            sender.send_offsets(offsets, membership)
        for record in records:
            sender.send(record)
        before_commit()
        sender.commit()

    patch.setattr(transactions, "_perform", turned)
    assert found(TWICE, source=schedules(("produce", STALLS)))


def test_a_commit_has_to_carry_the_generation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KafkaTransport, "_offsets", lambda *_: {})
    assert found(TWICE)


def test_a_member_must_not_claim_what_it_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(group_membership, "HonestAssignor", CooperativeStickyAssignor)
    assert found(STUCK)
