"""Rollup over random logs against a plain walk over the log: duplicates, conflicts, epochs, chunks and restarts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_days import day_borders
from reference.naive_rollup import roll_up
from support.rollup_runs import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    QUARTER_MS,
    Run,
    at,
    bits_of,
    cheap_estimates,
    check_of,
    marker,
    release,
    whole,
)
from support.rollup_walks import disturb, require_same_records

from sfm_stream.pipeline.rollup import publication
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.sketch.merge import merge_tally
from sfm_stream.wire.codec import decode_rollup
from sfm_stream.wire.keys import encode_key

SINCE, UNTIL = at("2025-10-30T12:00"), at("2025-12-10")
KINDS = {
    # New York: 2 November 2025 has 25 hours.
    ("America/New_York", 20 * MINUTE_MS): None,
    ("America/New_York", HOUR_MS): None,
    ("Asia/Kathmandu", QUARTER_MS): None,
    ("Asia/Kolkata", 5 * MINUTE_MS): None,
}
for zone, size in KINDS:
    KINDS[zone, size] = (
        calendar(zone, size, SINCE, 2027),
        day_borders(zone, SINCE - SINCE % DAY_MS - 2 * DAY_MS, UNTIL + 2 * DAY_MS),
    )
KEYS = ["a", "b", "ccc"]


@pytest.fixture(scope="module", autouse=True)
def _cheap():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publication, "estimate_many", cheap_estimates)
        yield


@st.composite
def epoch_events(draw, epoch, start, size):
    """(events of one epoch in order, end of the windows in them): windows are released first and then decided."""
    events, border = [], start
    for _ in range(draw(st.integers(1, 6))):
        few, many = st.integers(1, 2 * HOUR_MS // size), st.integers(1, 2 * DAY_MS // size)
        through = border + size * draw(st.one_of(few, few, few, many))
        near = [through - size * n for n in range(1, 1 + min(5, (through - border) // size))]
        for window in sorted(draw(st.sets(st.sampled_from([border, *near]), max_size=4))):
            for key in sorted(draw(st.sets(st.sampled_from(KEYS)))):
                events.append(("release", epoch, window, key, bits_of(draw(st.integers(0, 50)))))
        events.append(("marker", epoch, border, through))
        border = through
    if draw(st.booleans()):
        events.pop()  # the last marker is not there yet
    return events, border


@st.composite
def logs(draw):
    """(zone and window size, events): one or two epochs, the second from a border on that the first may never reach."""
    zone, size = draw(st.sampled_from(sorted(KINDS)))
    start = SINCE + draw(st.integers(0, DAY_MS // size)) * size
    first, through = draw(epoch_events(1, start, size))
    events = list(first)
    if draw(st.booleans()):
        later = through + size * draw(st.sampled_from([0, 0, 0, 1]))
        second, _ = draw(epoch_events(2, later, size))
        events = []
        while first and second:
            events.append((first if draw(st.booleans()) else second).pop(0))
        events += first + second
    for _ in range(
        draw(st.integers(0, 4)) if events else 0
    ):  # copies of what was there before, some of them with other bits
        source = draw(st.integers(0, len(events) - 1))
        event = events[source]
        if event[0] == "release" and draw(st.booleans()):
            event = (*event[:4], bits_of(draw(st.integers(51, 60))))
        events.insert(draw(st.integers(source + 1, len(events))), event)
    return (zone, size), events


def payloads(events, size):
    """The log as bytes, with records of others in between."""
    others = [release(SINCE, pipeline="other", window_ms=7), marker(SINCE, UNTIL, partition=1, partitions=2)]
    found = others[:1]
    for number, event in enumerate(events):
        if event[0] == "release":
            _, epoch, start, key, bits = event
            found.append(release(start, key, bits, epoch=epoch, window_ms=size))
        else:
            _, epoch, start, through = event
            found.append(marker(start, through, size, epoch=epoch))
        if number % 5 == 0:
            found.append(others[number % 2])
    return found


EXPIRE = st.integers(0, UNTIL // HOUR_MS).map(lambda hours: hours * HOUR_MS) | st.integers(SINCE, UNTIL)


@settings(max_examples=100)
@given(logs(), EXPIRE)
def test_what_is_published_is_what_a_plain_walk_over_the_log_finds(log, expire_ms):
    (zone, size), events = log
    days_of, days = KINDS[zone, size]
    run = Run(days_of, payloads(events, size))
    run.finish(expire_ms)
    expected, outcomes = roll_up(events, size, days_of.base_ms, days, expire_ms)
    assert {name: getattr(run.rollup.seen, name) for name in outcomes} == outcomes
    assert len(run.rollup.seen.conflicts) == outcomes["conflict"]
    found = dict(zip(run.newest, whole(map(decode_rollup, run.newest.values()), run.log), strict=True))
    assert set(found) == {(*place[:4], encode_key(place[4])) for place in expected}
    for (*place, key), wanted in expected.items():
        record = found[*place, encode_key(key)]
        assert (record.released, record.decided, record.windows) == (wanted.released, wanted.decided, wanted.windows)
        assert (record.complete, record.revision) == (wanted.complete, wanted.revision)
        assert tuple(record.tally.counts.reshape(-1).tolist()) == wanted.counts
        assert record.merged == merge_tally(record.tally)
        assert (record.value, record.standard_error) == (sum(wanted.counts), check_of(wanted.counts))
        assert (record.zone, record.partitions, record.unit) == (zone, 1, "removed")


@settings(max_examples=100)
@given(logs(), EXPIRE, st.sampled_from([1, 700, 8 << 20]), st.data())
def test_restarts_anywhere_change_nothing(log, expire_ms, max_bytes, data):
    """Equal revision and equal bytes, no revision going back, no needed release passed: Run checks at every commit."""
    (zone, size), events = log
    days_of, _ = KINDS[zone, size]
    records = payloads(events, size)
    whole = Run(days_of, records)
    whole.finish(expire_ms)
    run = Run(days_of, records, max_bytes)
    disturb(run, data, 6, lambda: data.draw(EXPIRE))
    run.finish(expire_ms)
    require_same_records(run, whole, expire_ms)
