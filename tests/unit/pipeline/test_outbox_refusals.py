"""Every record that stops the copy of the outbox, for good and before anything of it is published."""

import pytest
from support.outbox_runs import FOREVER_MS, A, B, add, closing, copy_of, drain, published, quarter, window
from support.rollup_runs import HOUR_MS, PIPELINE, QUARTER_MS, Run, bits_of, cheap_estimates, marker, release

from sfm_stream.errors import ConflictError, StateError
from sfm_stream.pipeline.outbox import OutboxCopy
from sfm_stream.pipeline.rollup import publication
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.types import Commit
from sfm_stream.wire.codec import decode_release, encode
from sfm_stream.wire.keys import MARKER_KEY, encode_key


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
ALIKE = release(quarter(0), "b")
"""Of the form of the release before it, so it is recognised and not decoded."""
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
        (A, ALIKE, "the record key is not the one of the release"),
        (None, ALIKE, "the record key is not the one of the release"),
        (MARKER_KEY, ALIKE, "the record key is not the one of the release"),
        (A, closing(0), "the record key is not the one of the close marker"),
        (None, closing(0), "the record key is not the one of the close marker"),
    ],
)
def test_what_does_not_belong_there_stops_it_naming_the_place(key, payload, match):
    copy = OutboxCopy(PIPELINE, 0, 8 << 20)
    copy.restore(Commit(0, 30, b"[1,30,30]"))
    copy.add(30, A, release(quarter(0), "a"))
    refuses(copy, StateError, rf"^outbox, partition 0, offset 31: {match}", 31, key, payload)


@pytest.mark.parametrize("other", [0, 2])
def test_a_record_of_a_partition_before_or_behind_its_own_stops_it(other):
    for key, payload in (
        (A, release(quarter(1), "a", partition=other, partitions=3)),
        (MARKER_KEY, closing(0, partition=other, partitions=3)),
    ):
        copy = OutboxCopy(PIPELINE, 1, 8 << 20)
        copy.restore(None)
        copy.add(0, A, release(quarter(0), "a", partition=1, partitions=3))
        refuses(copy, StateError, f"^outbox, partition 1, offset 1: a record of partition {other} ", 1, key, payload)


def test_a_roll_up_record_stops_it(monkeypatch):
    monkeypatch.setattr(publication, "estimate_many", cheap_estimates)
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


SPANS = ("15m", "hour", "day")
HOUR = {"span": "hour", "window_ms": HOUR_MS}


def hour(key, seed=1, number=0):
    """A release of an hour from T0 on."""
    return release(quarter(4 * number), key, bits_of(seed), **HOUR)


def hour_closing(low, high):
    return marker(quarter(4 * low), quarter(4 * high), HOUR_MS, span="hour", spans=SPANS)


def quarters(*numbers):
    """Windows of quarters of one key, by name of their span."""
    found = []
    for number in numbers:
        found += [release(quarter(number), "a", span="15m"), closing(number, span="15m", spans=SPANS)]
    return found


def test_each_released_span_has_markers_and_releases_of_its_own():
    log = [*quarters(0, 1, 2, 3), hour("a"), hour("b"), hour_closing(0, 1), *quarters(4, 5, 6, 7), hour("a", number=1)]
    log += [hour_closing(1, 2), *quarters(8)]
    steps = drain(copy_of(log))
    assert [record.value for record in published(steps)] == log
    assert steps[-1].commit[0].metadata == b"[1,%d,%d]" % (len(log), len(log))


def test_a_successor_reads_again_from_the_first_open_release_of_any_span():
    """The finer windows behind it are closed; it alone holds the reading back, and a second draw of it is refused."""
    log = [*quarters(0, 1, 2, 3), hour("a"), *quarters(4)]
    (step,) = drain(copy_of(log))
    assert step.commit[0].metadata == b"[1,11,8]"
    successor = OutboxCopy(PIPELINE, 0, 8 << 20)
    since = successor.restore(step.commit[0])
    add(successor, log[since:], since)
    assert successor.step() is None
    refuses(successor, ConflictError, "incident", len(log), A, hour("a", seed=2))


@pytest.mark.parametrize(
    ("record", "key", "match"),
    [
        (
            hour("b"),
            B,
            r"a release for the window of span hour that ends at \S+, behind the close marker of epoch 1 th",
        ),
        (
            hour_closing(2, 3),
            MARKER_KEY,
            r"a close marker of epoch 1, span hour, from \S+ on, the one before it ended at",
        ),
        (hour_closing(0, 2), MARKER_KEY, "a close marker of epoch 1, span hour"),
        (window(9, "a")[0], A, "a record of epoch 1 without the name of its span, where those before it are with one"),
        (closing(8), MARKER_KEY, "a record of epoch 1 without the name of its span"),
    ],
    ids=["behind its marker", "a gap", "an overlap", "a release without a name", "a marker without a name"],
)
def test_a_record_that_does_not_follow_those_of_its_span_stops_it(record, key, match):
    log = [*quarters(0, 1, 2, 3), hour("a"), hour_closing(0, 1), *quarters(4, 5)]
    text = refuses(
        copy_of(log), StateError, rf"^outbox, partition 0, offset {len(log)}: {match}", len(log), key, record
    )
    if "hour" in text:
        assert "2026-01-01T01:00:00Z" in text


def test_a_name_that_appears_in_an_epoch_without_names_stops_it():
    """Else a window that is closed under no name could be released a second time under one."""
    again = release(quarter(0), "a", bits_of(9), span="15m")
    refuses(
        copy_of(window(0, "a")), StateError, "with the name of its span, where those before it are without", 2, A, again
    )


def test_a_held_span_is_due_after_its_own_end():
    log = [*quarters(0, 1, 2, 3), hour("a"), hour_closing(0, 1)]
    copy = copy_of(log, hold_ms=QUARTER_MS)
    copy.due(quarter(5) - 1)
    assert [record.value for record in published(drain(copy))] == log[:6]
    copy.due(quarter(5))
    assert [record.value for record in published(drain(copy))] == log[6:]
