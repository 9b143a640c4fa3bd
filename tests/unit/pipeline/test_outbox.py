"""The copy of one partition of the outbox: bytes, order, steps, restarts and holding."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.outbox_runs import (
    FOREVER_MS,
    LOG,
    A,
    add,
    as_published,
    copy_of,
    drain,
    published,
    quarter,
    window,
)
from support.rollup_runs import HOUR_MS, PIPELINE, release

from sfm_stream.errors import StateError
from sfm_stream.pipeline.outbox import OutboxCopy
from sfm_stream.types import Commit
from sfm_stream.units import SKETCHES

# what is copied


def test_the_same_bytes_in_the_same_order_with_key_and_end_of_window():
    copy = copy_of(LOG)
    steps = drain(copy)
    assert published(steps) == [as_published(payload) for payload in LOG]
    assert all(record.value is payload for record, payload in zip(published(steps), LOG, strict=True))
    first, last = published(steps)[0], published(steps)[-1]
    assert (first.topic, first.partition, first.key, first.timestamp_ms) == (SKETCHES, 0, A, quarter(1))
    assert (last.key, last.timestamp_ms) == (b"", quarter(4))
    assert copy.step() is None
    assert copy.checkpoint() is None


def test_each_partition_goes_to_its_own():
    log = window(0, "a", partition=2, partitions=4)
    (step,) = drain(copy_of(log, partition=2))
    assert [record.partition for record in step.publish] == [2, 2]
    assert [commit.partition for commit in step.commit] == [2]


@pytest.mark.parametrize("limit", [1, 100, 200, 300, 1000, 8 << 20])
def test_chunks_are_as_large_as_the_limit_allows_and_hold_at_least_one_record(limit):
    steps = drain(copy_of(LOG, limit))
    assert published(steps) == [as_published(payload) for payload in LOG]
    sizes = [[len(record.key) + len(record.value) for record in step.publish] for step in steps]
    for size, following in zip(sizes, [*sizes[1:], None], strict=True):
        assert sum(size) <= limit or len(size) == 1
        assert following is None or sum(size) + following[0] > limit


def test_a_record_that_fits_exactly_is_in_the_chunk():
    sizes = [len(as_published(payload).key) + len(payload) for payload in LOG[:2]]
    assert len(copy_of(LOG, sum(sizes)).step().publish) == 2
    assert len(copy_of(LOG, sum(sizes) - 1).step().publish) == 1


def test_a_step_stays_the_same_whatever_is_added_until_it_is_committed():
    copy = copy_of(LOG[:2])
    step = copy.step()
    add(copy, LOG[2:], 2)
    copy.due(FOREVER_MS)
    assert copy.step() is step
    assert copy.checkpoint() is None
    assert (len(step.publish), step.commit[0].offset) == (2, 2)
    copy.committed(step)
    assert published(drain(copy)) == [as_published(payload) for payload in LOG[2:]]


def test_a_step_that_is_not_due_cannot_be_committed():
    copy = copy_of(LOG[:1])
    with pytest.raises(StateError, match="not due"):
        copy.committed(replace(copy.step()))
    (step,) = drain(copy)
    with pytest.raises(StateError, match="not due"):
        copy.committed(step)


# positions


def test_the_position_is_the_first_record_that_is_not_copied_across_gaps():
    """Markers of transactions take offsets too."""
    copy = OutboxCopy(PIPELINE, 0, 1)
    for offset, payload in zip((4, 7, 8), window(0, "a", "b"), strict=True):
        copy.add(offset, as_published(payload).key, payload)
    assert [step.commit for step in drain(copy)] == [
        (Commit(0, offset, b"[1,%d,%d]" % (offset, offset)),) for offset in (7, 8, 9)
    ]


def test_a_position_alone_is_committed_where_it_moved_and_nothing_waits():
    copy = copy_of(window(0, "a"))
    copy.passed(5)
    assert copy.checkpoint() is None, "records wait"
    (step,) = drain(copy)
    assert step.commit == (Commit(0, 5, b"[1,5,5]"),)
    assert copy.checkpoint() is None, "it did not move"
    copy.passed(3)
    assert copy.checkpoint() is None, "it never goes back"
    copy.passed(9)
    moved = copy.checkpoint()
    assert (moved.publish, moved.commit) == ((), (Commit(0, 9, b"[1,9,9]"),))
    assert copy.step() is moved
    copy.committed(moved)
    assert copy.step() is None
    assert copy.checkpoint() is None
    assert OutboxCopy(PIPELINE, 0, 1).restore(moved.commit[0]) == 9


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"[]",
        b"[1]",
        b"[1,5]",
        b"[1,6,5]",
        b"[2,5,5]",
        b"[1,5,0,0]",
        b"[1,5,5] x",
        b'[1,"5",5]',
        b"[1,5.0,5]",
        b"[true,5,5]",
        b"[1,5,-1]",
        b"[1,5,6]",
        b"{}",
        b"\xff",
    ],
)
def test_a_committed_state_that_is_not_of_this_version_stops(metadata):
    with pytest.raises(StateError, match=r"outbox, partition 3: .*committed state"):
        OutboxCopy(PIPELINE, 3, 1).restore(Commit(3, 5, metadata))
    assert OutboxCopy(PIPELINE, 3, 1).restore(Commit(3, 5, b"[1,5,5]")) == 5


def test_a_negative_position_stops():
    with pytest.raises(StateError):
        OutboxCopy(PIPELINE, 0, 1).restore(Commit(0, -1, b"[1,-1,-1]"))


@pytest.mark.parametrize("limit", [1, 250, 8 << 20])
def test_from_every_committed_state_exactly_what_is_missing_follows(limit):
    done = 0
    for step in drain(copy_of(LOG, limit)):
        done += len(step.publish)
        successor = OutboxCopy(PIPELINE, 0, limit)
        offset = successor.restore(step.commit[0])
        assert offset == done
        add(successor, LOG[offset:], offset)
        assert published(drain(successor)) == [as_published(payload) for payload in LOG[done:]]


@st.composite
def logs(draw):
    """(offset, payload) of a valid outbox: two epochs interleaved, doubled records, gaps between offsets."""
    payloads, borders = [], {1: 0, 2: 9}
    for epoch in draw(st.lists(st.sampled_from([1, 1, 2]), max_size=6)):
        keys = draw(st.lists(st.sampled_from("abc"), unique=True).map(sorted))
        for payload in window(borders[epoch], *keys, epoch=epoch):
            payloads += [payload] * draw(st.sampled_from([1, 1, 1, 2]))
        borders[epoch] += 1
    gaps = draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=len(payloads), max_size=len(payloads)))
    offsets = [sum(gaps[: n + 1]) - 1 for n in range(len(payloads))]
    return list(zip(offsets, payloads, strict=True))


@settings(max_examples=150)
@given(
    logs(),
    st.sampled_from([1, 150, 300, 8 << 20]),
    st.sampled_from([None, 0, HOUR_MS]),
    st.lists(
        st.one_of(
            st.tuples(st.just("read"), st.integers(1, 6)),
            st.tuples(st.just("clock"), st.integers(0, 16)),
            st.tuples(st.sampled_from(["commit", "commit", "lose", "crash", "checkpoint"]), st.just(0)),
        ),
        max_size=40,
    ),
)
def test_whenever_it_is_restarted_there_is_no_gap_and_no_duplicate(log, limit, hold_ms, actions):
    committed, topic = None, []
    wanted = [as_published(payload) for _, payload in log]
    end = log[-1][0] + 1 if log else 0

    def start():
        copy = OutboxCopy(PIPELINE, 0, limit, hold_ms)
        offset = copy.restore(committed)
        return copy, [entry for entry in log if entry[0] >= offset]

    def take(step):
        nonlocal committed
        topic.extend(step.publish)
        (committed,) = step.commit
        assert topic == wanted[: len(topic)]
        following = [offset for offset, _ in log[len(topic) :]]
        assert not following or committed.offset <= following[0]
        assert not topic or committed.offset > log[len(topic) - 1][0]
        copy.committed(step)

    copy, rest = start()
    now = 0
    for action, number in [*actions, ("crash", 0), ("read", len(log)), ("clock", 1000)]:
        if action == "read":
            for offset, payload in rest[:number]:
                copy.add(offset, as_published(payload).key, payload)
            rest = rest[number:]
            copy.passed(rest[0][0] if rest else end)
        elif action == "clock":
            now = quarter(number)
            copy.due(now)
        elif action == "crash":
            copy, rest = start()
            copy.due(now)
        elif action == "lose":
            assert copy.step() is copy.step()
        elif (step := copy.step() if action == "commit" else copy.checkpoint()) is not None:
            take(step)
    while (step := copy.step() or copy.checkpoint()) is not None:
        take(step)
    assert topic == wanted
    assert (committed.offset if committed else 0) == end


# holding


def test_without_a_slot_nothing_waits_and_no_time_is_needed():
    copy = copy_of(LOG)
    assert len(published(drain(copy))) == len(LOG)


@pytest.mark.parametrize("hold_ms", [0, 1, HOUR_MS])
def test_with_a_slot_nothing_is_due_before_its_time_and_all_is_at_it(hold_ms):
    log = [*window(0, "a", "b"), *window(1, "a")]
    copy = copy_of(log, hold_ms=hold_ms)
    assert copy.step() is None, "nobody has said what time it is"
    for number, records in ((1, log[:3]), (2, log[3:])):
        due_ms = quarter(number) + hold_ms
        copy.due(due_ms - 1)
        assert copy.step() is None
        assert copy.checkpoint() is None
        copy.due(due_ms)
        (step,) = drain(copy)
        assert list(step.publish) == [as_published(payload) for payload in records]


def test_after_its_time_all_follows_in_chunks():
    copy = copy_of(LOG, limit=1, hold_ms=HOUR_MS)
    copy.due(FOREVER_MS)
    assert [record.value for record in published(drain(copy))] == LOG


def test_a_record_that_is_held_holds_all_behind_it():
    log = [release(quarter(8), epoch=2), *window(0, "a", "b")]
    copy = copy_of(log, hold_ms=HOUR_MS)
    copy.due(quarter(9) + HOUR_MS - 1)
    assert copy.step() is None
    copy.due(quarter(9) + HOUR_MS)
    assert [record.value for record in published(drain(copy))] == log


def test_what_is_held_is_read_again_after_a_restart():
    copy = copy_of([*window(0, "a"), *window(1, "a")], hold_ms=0)
    copy.due(quarter(1))
    (step,) = drain(copy)
    assert step.commit[0].offset == 2


def test_a_clock_that_goes_back_holds_again_but_takes_no_step_back():
    copy = copy_of([*window(0, "a"), *window(1, "a")], hold_ms=0)
    copy.due(quarter(1))
    step = copy.step()
    copy.due(quarter(0))
    assert copy.step() is step
    copy.committed(step)
    copy.due(quarter(2) - 1)
    assert copy.step() is None
