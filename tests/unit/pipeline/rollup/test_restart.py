"""Restarts, transactions and the history of a roll-up."""

import pytest
from support.rollup_cases import KATHMANDU, T0, UTC, B, closed, quarter, windows
from support.rollup_runs import (
    DAY_MS,
    HOUR_MS,
    Run,
    marker,
    release,
    run_of,
)

from sfm_stream.errors import StateError
from sfm_stream.pipeline.rollup.position import decode_rollup_state
from sfm_stream.pipeline.rollup.rollup import Rollup
from sfm_stream.types import Commit
from sfm_stream.wire.codec import Release, decode, decode_rollup, encode


def busy_log():
    """A day and some hours of two keys."""
    log = []
    for hour in range(30):
        low = 4 * hour
        log += [*windows(low), *windows(low + 2, key="b")][: 1 + hour % 2]
        log += [closed(low, low + 1), *windows(low + 3, key="b"), closed(low + 1, low + 4)]
    return log


@pytest.mark.parametrize("calendar", [UTC, KATHMANDU], ids=["UTC", "Kathmandu"])
@pytest.mark.parametrize("max_bytes", [1, 1000, 8 << 20])
def test_a_restart_at_every_commit_gives_the_same_bytes(max_bytes, calendar):
    """In Kathmandu a day ends within an hour, which begins in a day that is published and ends in one that is open."""
    whole = run_of(calendar, busy_log())
    whole.finish()
    run = run_of(calendar, busy_log(), max_bytes=max_bytes)
    while run.read(3):
        while (step := run.rollup.step()) is not None:
            run.take(step)
            run.restart()
            run.read(2)
    assert run.newest == whole.newest
    assert run.history == whole.history, "in the same order, and nothing twice"


def test_a_step_stays_the_same_until_it_is_committed():
    run = run_of(UTC, [*windows(0), *windows(0, key="b"), closed(0, 4)], max_bytes=1)
    run.read()
    first = run.rollup.step()
    assert run.rollup.step() is first
    assert len(first.publish) == 1
    assert run.rollup.checkpoint() is None, "not between two steps"
    with pytest.raises(StateError, match="not due"):
        run.rollup.committed(type(first)())
    run.take(first)
    with pytest.raises(StateError, match="not due"):
        run.rollup.committed(first)
    assert len(run.drain()) == 1


def test_half_an_hour_is_not_taken_for_a_whole_one_on_replay():
    """What is decided comes back with the markers that are read again, not before the releases in front of them."""
    run = run_of(UTC, [*windows(0, 1, 2), *windows(0, 1, 2, key="b"), closed(0, 4)], max_bytes=1)
    run.read()
    run.take(run.rollup.step())
    run.restart()
    assert run.at == 0
    run.read(4)
    assert run.rollup.step() is None
    assert [(r.key, r.released) for r in run.finish()] == [(B, 3)]


def test_replay_begins_with_the_oldest_day_that_is_not_published():
    run, log = run_of(UTC, busy_log()), busy_log()
    first = {day: next(at for at, payload in enumerate(log) if begins(payload) >= T0 + day * DAY_MS) for day in (0, 1)}
    while run.read(1):
        run.drain()
        run.checkpoint()
        published = ("day", T0 + DAY_MS) in {(r.grain, r.window.end_ms) for r in map(decode_rollup, run.history)}
        assert run.commit.offset == first[published]


def begins(payload):
    """Start of the window of a release; of a marker nothing that counts."""
    record = decode(payload)
    return record.window.start_ms if isinstance(record, Release) else -1


def test_where_every_release_is_passed_on_replay_begins_with_the_window_that_is_open():
    names = {"span": "day", "spans": ("day",)}
    log = []
    for day in range(5):
        log += [release(T0 + day * DAY_MS, window_ms=DAY_MS, span="day")]
        log += [marker(T0 + day * DAY_MS, T0 + (day + 1) * DAY_MS, DAY_MS, **names)]
    run = Run(UTC, log, finest={(1, "day"): "day"})
    while run.read(1):
        run.drain()
        run.checkpoint()
        assert run.at - run.commit.offset <= 1


def test_history_is_needed_for_open_days_only():
    run = run_of(UTC, [*busy_log(), *windows(121), closed(120, 122)])
    run.finish()
    run.checkpoint()
    other = Rollup("views", 0, UTC)
    asked = [decode(payload) for payload in run.history]
    kept = [r for r in asked if r.window.end_ms > T0 + DAY_MS]
    other.restore(run.commit, ())
    assert [r for r in asked if other.recalls(r.window.end_ms)] == kept != asked
    assert 0 < other.recalls_since_ms < min(r.window.end_ms for r in kept)

    filtered = Run(UTC, run.log)
    filtered.commit, filtered.history, filtered.newest = run.commit, [encode(r) for r in kept], dict(run.newest)
    filtered.restart()
    run.restart()
    for each in (run, filtered):
        each.log = [*each.log, closed(122, 96 * 2)]
    assert run.finish() == filtered.finish() != []


def test_history_of_an_ended_epoch_is_not_needed_for_ever():
    run = run_of(
        UTC, [*windows(0), closed(0, 2), *windows(2, epoch=2), closed(2, 96, epoch=2), closed(96, 97, epoch=2)]
    )
    run.finish()
    run.checkpoint()
    other = Rollup("views", 0, UTC)
    other.restore(run.commit, ())
    assert not other.recalls(T0 + HOUR_MS)
    assert not other.recalls(T0 + DAY_MS)
    assert other.recalls(T0 + DAY_MS + HOUR_MS)
    hours = range(T0 - 3 * DAY_MS, T0 + 3 * DAY_MS, HOUR_MS)
    assert other.recalls_since_ms < min(end for end in hours if other.recalls(end))


def test_records_of_the_history_that_are_there_twice_are_counted_once():
    run = run_of(UTC, [*windows(0), closed(0, 4)])
    run.finish()
    run.checkpoint()
    run.history *= 2
    run.restart()
    run.log.append(closed(4, 96))
    (day,) = run.finish()
    assert (day.grain, day.released) == ("day", 1)


def test_a_position_older_than_the_history_makes_the_same_records_again():
    """As when positions come back from a backup: hours that are made again must not be in their day twice."""
    run = run_of(UTC, [*windows(0), closed(0, 4), *windows(4), closed(4, 8)])
    run.read(2)
    run.drain()
    older = run.commit
    run.finish()
    whole = run_of(UTC, [*run.log, closed(8, 96)])
    whole.finish()
    again = Rollup("views", 0, UTC)
    made = []
    for offset in range(again.restore(older, run.history), len(whole.log)):
        again.add(offset, whole.log[offset])
    while (step := again.step()) is not None:
        made += [record.value for record in step.publish]
        again.committed(step)
    assert made == whole.history[1:]


def test_what_is_published_does_not_expire_while_it_is_read_again():
    """An epoch that is still open holds replay back, so that hours of the next one are met again."""
    run = run_of(UTC, [*windows(0), closed(0, 1), *windows(4, epoch=2), closed(4, 8, epoch=2)])
    assert [(r.epoch, r.complete) for r in run.finish()] == [(2, True)]
    run.restart()
    run.read(3)
    run.rollup.expire(T0 + 2 * HOUR_MS)
    assert [(r.epoch, r.complete) for r in run.drain()] == [(1, False)]
    run.rollup.expire(T0 + 2 * HOUR_MS)
    assert run.drain() == []
    assert [(r.epoch, r.complete) for r in run.finish()] == []
    assert run.rollup.seen.merged == 2


def test_the_first_start_reads_from_the_beginning():
    assert Rollup("views", 0, UTC).restore(None, ()) == 0
    assert Rollup("views", 0, UTC).recalls(T0) is False


def test_a_committed_state_of_another_zone_is_refused():
    run = run_of(UTC, [*windows(0), closed(0, 4)])
    run.finish()
    with pytest.raises(StateError, match=r"rollup\.zone is Asia/Kathmandu, the roll-ups so far are of UTC"):
        Rollup("views", 0, KATHMANDU).restore(run.commit, run.history)


@pytest.mark.parametrize("metadata", [b"", b"{}", b"[9]", b'[9,"UTC",3,[]]', b'[1,"UTC",2,[]]', b"\xff"])
def test_a_committed_state_that_cannot_be_read_is_refused(metadata):
    with pytest.raises(StateError, match=r"^roll-up of partition 0: .*committed state"):
        Rollup("views", 0, UTC).restore(Commit(0, 3, metadata), ())


def test_the_committed_state_is_what_was_known_at_its_offset():
    run = run_of(UTC, [*windows(0), closed(0, 4), *windows(4), closed(4, 5), closed(5, 6), *windows(5)])
    run.finish()
    run.checkpoint()
    state = decode_rollup_state(run.commit)
    ((span,),) = (epoch.spans for epoch in state.epochs)
    assert (state.offset, span.from_ms, span.through_ms) == (0, 0, 0), "the day begins there"
    assert (span.cursor.end_ms, span.cursor.key) == (quarter(4), None)
    run.log += [closed(6, 96), *windows(96), closed(96, 97)]
    run.finish()
    run.checkpoint()
    state = decode_rollup_state(run.commit)
    ((span,),) = (epoch.spans for epoch in state.epochs)
    assert (state.offset, span.from_ms, span.through_ms) == (7, T0, quarter(96))
    assert (span.cursor.end_ms, span.cursor.key) == (quarter(96), None)
