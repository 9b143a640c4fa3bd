"""Rollup over random logs of epochs with several released spans, against a plain walk over the log.

With time zones whose days begin on half hours, and both days on which clocks change; with duplicates, conflicts, chunks
and restarts. Epochs of one span that has no name: test_rollup_log.py.
"""

from bisect import bisect_right
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_days import day_borders, month_borders, week_borders
from reference.naive_span_rollup import roll_up, sources
from support.rollup_runs import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
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

SIZES_MS = {f"{n}m": n * MINUTE_MS for n in (5, 15, 20, 30)} | {
    "hour": HOUR_MS,
    "day": None,
    "week": None,
    "month": None,
}
SPANS = {
    # Since when; a day of 25, 23, 24.5 or 23.5 hours follows.
    ("America/New_York", "2025-10-30T12:00"): ["20m hour day", "30m day", "hour day week", "20m hour", "day month"],
    ("America/New_York", "2026-03-06T03:00"): ["20m hour day", "30m", "hour week"],
    ("Australia/Lord_Howe", "2026-04-03T02:30"): ["15m hour day", "30m day", "5m 15m 30m day"],
    ("Australia/Lord_Howe", "2025-10-02T02:30"): ["15m hour day", "5m hour", "30m day week"],
    ("Asia/Kolkata", "2026-01-29T04:00"): ["5m hour day", "30m day month", "15m day"],
}


def zone_of(zone, since):
    low = at(since) - at(since) % DAY_MS - 32 * DAY_MS
    borders = {
        name: of(zone, low, low + 90 * DAY_MS)
        for name, of in (("day", day_borders), ("week", week_borders), ("month", month_borders))
        if name == "day" or any(name in spans for spans in SPANS[zone, since])
    }
    return calendar(zone, 5 * MINUTE_MS, at(since), 2027), borders


ZONES = {place: zone_of(*place) for place in SPANS}
KEYS = ["a", "b", "ccc"]


@pytest.fixture(scope="module", autouse=True)
def _cheap():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publication, "estimate_many", cheap_estimates)
        yield


def windows_of(name, low_ms, high_ms, borders):
    """(end, start) of the windows of a span that lie wholly between two times."""
    size = SIZES_MS[name]
    if size is not None:
        first = -(-low_ms // size) * size
        return [(start + size, start) for start in range(first, high_ms - size + 1, size)]
    ends = borders[name]
    return [(b, a) for a, b in pairwise(ends) if low_ms <= a and b <= high_ms]


@st.composite
def epoch_events(draw, epoch, names, start, borders):
    """(events of one epoch in order, end of the base windows in them), as counting publishes them."""
    base, *coarser = names
    size = SIZES_MS[base]
    events, border = [], start

    def releases(span, low, high):
        for key in sorted(draw(st.sets(st.sampled_from(KEYS)))):
            events.append(("release", epoch, span, low, high, key, bits_of(draw(st.integers(0, 50)))))

    def close_base(through):
        nonlocal border
        if through == border:
            return
        ends = [through] if size is None else [*range(border, through, size)]
        if size is None:
            releases(base, border, through)
        else:
            for low in ends[-2:] if through > busy_from else ():
                releases(base, low, low + size)
        events.append(("marker", epoch, base, border, through))
        border = through

    hours = HOUR_MS // size if size else 0
    busy_from = 0
    for _ in range(draw(st.integers(1, 4))):
        if size is None:
            through = borders[base][bisect_right(borders[base], border) + draw(st.integers(0, 3))]
        else:
            through = border + size * draw(st.one_of(*[st.integers(1, 3 * hours)] * 2, st.integers(1, 30 * hours)))
        busy_from = through - 2 * HOUR_MS  # windows of hours before it have no release
        due = sorted(
            (end, end - low, low, name)
            for name in coarser
            for end, low in windows_of(name, start, through, borders)
            if end > border
        )
        if size is None:  # one marker for each day
            due = sorted([*due, *((end, 0, low, "") for end, low in windows_of(base, border, through, borders))])
        for end, _, low, name in due:
            close_base(end)
            if name:
                if end > busy_from or SIZES_MS[name] is None:
                    releases(name, low, end)
                events.append(("marker", epoch, name, low, end))
        close_base(through)
    if draw(st.booleans()):
        events.pop()  # the last marker is not there yet
    return events, border


@st.composite
def logs(draw):
    """(place, epochs, events): one or two epochs, the second from a border on that the first may never reach."""
    place = draw(st.sampled_from(sorted(SPANS)))
    _, borders = ZONES[place]
    names = [draw(st.sampled_from(SPANS[place])).split() for _ in range(2)]
    since = at(place[1])
    if SIZES_MS[names[0][0]] is None:
        start = borders[names[0][0]][bisect_right(borders[names[0][0]], since)]
    else:
        start = -(-since // HOUR_MS) * HOUR_MS + HOUR_MS * draw(st.integers(0, 60))
    first, through = draw(epoch_events(1, names[0], start, borders))
    events, epochs = list(first), {1: names[0]}
    if draw(st.booleans()) and all(SIZES_MS[each[0]] is not None for each in names):
        later = -(-through // HOUR_MS) * HOUR_MS if draw(st.booleans()) else through
        later = -(-later // SIZES_MS[names[1][0]]) * SIZES_MS[names[1][0]]
        second, _ = draw(epoch_events(2, names[1], later, borders))
        events, epochs = [], epochs | {2: names[1]}
        while first and second:
            events.append((first if draw(st.booleans()) else second).pop(0))
        events += first + second
    for _ in range(draw(st.integers(0, 4)) if events else 0):  # copies, some of them with other bits
        source = draw(st.integers(0, len(events) - 1))
        event = events[source]
        if event[0] == "release" and draw(st.booleans()):
            event = (*event[:6], bits_of(draw(st.integers(51, 60))))
        events.insert(draw(st.integers(source + 1, len(events))), event)
    return place, {n: {name: SIZES_MS[name] for name in each} for n, each in epochs.items()}, events


def payloads(epochs, events):
    found = []
    for event in events:
        kind, epoch, span, start, end = event[:5]
        size = epochs[epoch][span] or end - start
        if kind == "release":
            found.append(release(start, event[5], event[6], epoch=epoch, window_ms=size, span=span))
        else:
            found.append(marker(start, end, size, epoch=epoch, span=span, spans=tuple(epochs[epoch])))
    return found


def run_of(place, epochs, events, max_bytes=8 << 20):
    days_of, _ = ZONES[place]
    finest = {}
    for number, spans in epochs.items():
        for grain in ("month", "week", "day", "hour", "quarter"):
            source, _ = sources(spans, days_of.base_ms).get(grain, (None, None))
            if source is not None:
                finest[number, source] = grain
    return Run(days_of, payloads(epochs, events), max_bytes, finest)


EXPIRE_H = st.integers(0, 60 * 24)


@settings(max_examples=25)
@given(logs(), EXPIRE_H)
def test_what_is_published_is_what_a_plain_walk_over_the_log_finds(log, expire_h):
    place, epochs, events = log
    expire_ms = at(place[1]) + expire_h * HOUR_MS
    run = run_of(*log)
    run.finish(expire_ms)
    days_of, borders = ZONES[place]
    expected, outcomes = roll_up(events, epochs, days_of.base_ms, borders["day"], expire_ms)
    assert {name: getattr(run.rollup.seen, name) for name in outcomes} == outcomes
    assert len(run.rollup.seen.conflicts) == outcomes["conflict"]
    found = dict(zip(run.newest, whole(map(decode_rollup, run.newest.values()), run.log), strict=True))
    assert set(found) == {(*place[:4], encode_key(place[4])) for place in expected}
    for (*place, key), wanted in expected.items():
        record = found[*place, encode_key(key)]
        assert (record.origin, record.span) == (wanted.origin, wanted.span)
        assert (record.released, record.decided, record.windows) == (wanted.released, wanted.decided, wanted.windows)
        assert (record.complete, record.revision) == (wanted.complete, wanted.revision)
        assert tuple(record.tally.counts.reshape(-1).tolist()) == wanted.counts
        assert record.merged == merge_tally(record.tally)
        assert (record.value, record.standard_error) == (sum(wanted.counts), check_of(wanted.counts))


@settings(max_examples=25)
@given(logs(), EXPIRE_H, st.sampled_from([1, 700, 8 << 20]), st.data())
def test_restarts_anywhere_change_nothing(log, expire_h, max_bytes, data):
    """Equal revision and equal bytes, no revision going back, no needed release passed: Run checks at every commit."""
    expire_ms = at(log[0][1]) + expire_h * HOUR_MS
    whole = run_of(*log)
    whole.finish(expire_ms)
    run = run_of(*log, max_bytes)
    disturb(run, data, 20, lambda: at(log[0][1]) + data.draw(EXPIRE_H) * HOUR_MS)
    run.finish(expire_ms)
    require_same_records(run, whole, expire_ms)
