"""The copy of one outbox partition: bytes, order, chunks, restarts, holding, and every reason to stop."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rollup_runs import HOUR_MS, PIPELINE, QUARTER_MS, Run, at, bits_of, cheap_estimate, marker, release

from sfm_stream.errors import ConflictError, StateError
from sfm_stream.pipeline.counting.releases import MARKER_KEY
from sfm_stream.pipeline.outbox import OutboxCopy
from sfm_stream.pipeline.rollup import publication
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.types import Commit, Record
from sfm_stream.units import SKETCHES
from sfm_stream.wire.codec import CloseMarker, decode, decode_release, encode
from sfm_stream.wire.keys import encode_key

T0 = at("2026-01-01")
A, B = encode_key("a"), encode_key("b")
FOREVER_MS = 1 << 62


def quarter(number):
    return T0 + number * QUARTER_MS


def window(number, *keys, **other):
    """Releases of a window and its marker."""
    return [*(release(quarter(number), key, **other) for key in keys), closing(number, **other)]


def closing(number, **other):
    return marker(quarter(number), quarter(number + 1), **other)


def as_published(payload):
    """What has to be in the sketch topic for a record of the outbox."""
    record = decode(payload)
    is_marker = isinstance(record, CloseMarker)
    key, stamp = (MARKER_KEY, record.through_ms) if is_marker else (record.key, record.window.end_ms)
    return Record(SKETCHES, record.partition, key, payload, stamp)


def add(copy, log, at=0):
    """Add payloads under their own keys, at consecutive offsets."""
    for offset, payload in enumerate(log, at):
        copy.add(offset, as_published(payload).key, payload)


def drain(copy):
    """Commit what is due; returns the steps."""
    steps = []
    while (step := copy.step()) is not None:
        assert copy.step() is step
        copy.committed(step)
        steps.append(step)
    return steps


def published(steps):
    return [record for step in steps for record in step.publish]


def copy_of(log=(), limit=8 << 20, hold_ms=None, partition=0):
    copy = OutboxCopy(PIPELINE, partition, limit, hold_ms)
    assert copy.restore(None) == 0
    add(copy, log)
    return copy


LOG = [*window(0, "a", "b"), *window(1), *window(2, "b"), *window(7, "a", "c", epoch=2), *window(3, "a")]


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


# what stops it


def refuses(copy, error, match, offset, key, payload):
    """Require that a record is refused, for good and with all that was not committed; returns the message."""
    before = copy.step()
    with pytest.raises(error, match=match) as raised:
        copy.add(offset, key, payload)
    for later in (copy.step, copy.checkpoint, lambda: copy.add(offset + 1, B, release(quarter(50), "b"))):
        with pytest.raises(error) as again:
            later()
        assert again.value is raised.value
    if before is not None:
        copy.committed(before)  # its transaction may have been under way
        with pytest.raises(error):
            copy.step()
    return str(raised.value)


GOOD = release(quarter(1), "a")
ROLLUP_CALENDAR = calendar("UTC", QUARTER_MS, 0, 2030)


@pytest.mark.parametrize(
    ("key", "payload", "match"),
    [
        (A, None, "an empty record"),
        (A, b"", "not a record of this version"),
        (A, b"garbage", "not a record of this version"),
        (A, GOOD[:-1], "not a record of this version"),
        (A, GOOD + b"\0", "not a record of this version"),
        (A, release(quarter(1), "a", pipeline="clicks"), "a record of pipeline clicks, expected views"),
        (MARKER_KEY, closing(0, pipeline="clicks"), "a record of pipeline clicks, expected views"),
        (A, release(quarter(1), "a", partition=1, partitions=2), "a record of partition 1"),
        (MARKER_KEY, closing(0, partition=1, partitions=2), "a record of partition 1"),
        (B, GOOD, "the record key is not the one of the release"),
        (None, GOOD, "the record key is not the one of the release"),
        (MARKER_KEY, GOOD, "the record key is not the one of the release"),
        (A, closing(0), "the record key is not the one of the close marker"),
        (None, closing(0), "the record key is not the one of the close marker"),
    ],
)
def test_what_does_not_belong_there_stops_it_naming_the_place(key, payload, match):
    copy = OutboxCopy(PIPELINE, 0, 8 << 20)
    copy.restore(Commit(0, 30, b"[1,30,30]"))
    copy.add(30, A, release(quarter(0), "a"))
    refuses(copy, StateError, rf"^outbox, partition 0, offset 31: {match}", 31, key, payload)


def test_a_roll_up_record_stops_it(monkeypatch):
    monkeypatch.setattr(publication, "estimate", cheap_estimate)
    (hour,) = Run(ROLLUP_CALENDAR, [GOOD, marker(quarter(0), quarter(4))]).finish()
    refuses(copy_of(), StateError, "^outbox, partition 0, offset 7: a roll-up record", 7, A, encode(hour))


def test_no_message_shows_a_key():
    secret = "secret-page"
    payload = release(quarter(0), secret)
    damaged = payload.replace(secret.encode(), b"\xff" + secret.encode()[1:])
    assert damaged != payload
    for key, value in ((A, payload), (secret.encode(), GOOD), (encode_key(secret), damaged)):
        text = refuses(copy_of(), StateError, "^outbox, partition 0, offset 0: ", 0, key, value)
        assert "secret" not in text
        assert "page" not in text
        assert "ecret" not in text


@pytest.mark.parametrize("offset", [0, 2])
def test_a_record_that_was_read_before_stops_it(offset):
    refuses(copy_of(window(0, "a", "b")), StateError, "before offset 3 has been read", offset, A, GOOD)


@pytest.mark.parametrize("committed", [False, True])
def test_a_second_payload_of_a_release_is_an_incident(committed):
    first, second = (release(quarter(0), "a", bits_of(seed)) for seed in (1, 2))
    copy = copy_of([first, release(quarter(0), "b")])
    if committed:
        assert len(published(drain(copy))) == 2
    name = decode_release(first).release_id
    assert name == decode_release(second).release_id
    text = refuses(copy, ConflictError, rf"^outbox, partition 0, offset 2: .* {name.hex()}", 2, A, second)
    assert "incident" in text


def test_a_successor_refuses_a_second_payload_of_what_was_copied_before_it():
    """A restart after the refusal must not undo it: it reads the open windows again, and copies none of them again."""
    log = [*window(0, "a"), release(quarter(1), "a", bits_of(1)), release(quarter(1), "b")]
    (step,) = drain(copy_of(log))
    successor = OutboxCopy(PIPELINE, 0, 8 << 20)
    since = successor.restore(step.commit[0])
    assert since == 2
    add(successor, log[since:], since)
    assert successor.step() is None
    assert successor.checkpoint() is None
    refuses(successor, ConflictError, "incident", len(log), A, release(quarter(1), "a", bits_of(2)))


def test_a_second_payload_stops_what_is_held_too():
    copy = copy_of([release(quarter(0), "a", bits_of(1))], hold_ms=0)
    with pytest.raises(ConflictError):
        add(copy, [release(quarter(0), "a", bits_of(2))], 1)
    copy.due(FOREVER_MS)
    with pytest.raises(ConflictError):
        copy.step()


def test_a_second_payload_is_found_behind_a_marker_that_does_not_close_its_window():
    log = [release(quarter(1), "a", bits_of(1)), closing(0)]
    refuses(copy_of(log), ConflictError, "incident", 2, A, release(quarter(1), "a", bits_of(2)))


def test_the_same_record_twice_is_copied_twice():
    once = [*window(0, "a"), *window(1, "b")]
    log = [once[0], once[0], once[1], once[1], once[2], once[1], once[2], once[3]]
    assert [record.value for record in published(drain(copy_of(log)))] == log


def test_other_keys_windows_and_epochs_are_no_second_payload():
    log = [release(quarter(0), "a", bits_of(n), epoch=epoch) for n, epoch in enumerate((1, 2, 3))]
    log += [release(quarter(0), "b"), release(quarter(1), "a", bits_of(5))]
    assert len(published(drain(copy_of(log)))) == len(log)


@pytest.mark.parametrize("number", [0, 1])
def test_a_release_behind_the_marker_of_its_window_stops_it(number):
    copy = copy_of([*window(0, "a"), *window(1, "a")])
    drain(copy)
    late = release(quarter(number), "a")  # even the one that is there already
    text = refuses(
        copy, StateError, "^outbox, partition 0, offset 4: a release for the window that ends at", 4, A, late
    )
    assert "epoch 1 through 2026-01-01T00:30:00Z" in text


def test_a_marker_closes_windows_of_its_own_epoch_only():
    log = [*window(5, "a", epoch=2), *window(0, "a"), release(quarter(6), "a", epoch=2)]
    assert len(published(drain(copy_of(log)))) == len(log)


@pytest.mark.parametrize(
    "second",
    [closing(2), closing(0, fingerprint="cd"), marker(quarter(0), quarter(2))],
    ids=["gap", "other content", "overlap"],
)
def test_a_marker_that_does_not_follow_the_one_before_stops_it(second):
    copy = copy_of(window(0, "a"))
    text = refuses(copy, StateError, "^outbox, partition 0, offset 2: a close marker of epoch 1", 2, MARKER_KEY, second)
    assert "the one before it ended at 2026-01-01T00:15:00Z" in text


def test_after_a_restart_only_what_was_read_since_is_judged():
    """The first marker of an epoch may begin anywhere, and what lies before the position is not known."""
    log = [*window(0, "a", "b"), *window(1, "a")]
    (step,) = drain(copy_of(log))
    successor = OutboxCopy(PIPELINE, 0, 1)
    assert successor.restore(step.commit[0]) == 5
    add(successor, window(2, "a"), 5)
    assert len(published(drain(successor))) == 2
    refuses(successor, StateError, "behind the close marker", 7, A, release(quarter(2), "a"))


def test_what_is_kept_of_closed_windows_does_not_grow():
    copy = copy_of()
    for number in range(50):
        add(copy, window(number, "a", "b"), 3 * number)
        drain(copy)
    (epoch,) = copy._epochs.values()
    assert not epoch.open_releases
    assert not copy._waiting
