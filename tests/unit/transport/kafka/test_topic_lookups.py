"""Records of a topic that are looked up by time and key: those that are asked for, and little else is read."""

from __future__ import annotations

from random import Random

import pytest
from support.epochs_on_topics import CountingLog, Epoch, Written, flat
from support.fake_kafka_broker import FakeBroker
from support.memory_topics import stored
from support.published_topics import T0
from support.rollup_runs import DAY_MS, QUARTER_MS

from sfm_stream.types import StoredRecord
from sfm_stream.units import FOREVER_MS, ROLLUPS, SKETCHES
from sfm_stream.wire.codec import CloseMarker, decode_marker
from sfm_stream.wire.keys import encode_key

WINDOWS = 200
A = encode_key("a")


def quarter(number: int) -> int:
    return T0 + number * QUARTER_MS


def written(*epochs: Epoch) -> Written:
    """Two partitions, in each every window of these epochs."""
    return Written().write([flat([w for e in epochs for w in e.records(Random(p), p, 2)]) for p in (0, 1)])


@pytest.fixture(scope="module")
def topics() -> Written:
    """Besides, in the topic of roll-ups the same records, and a copy of an early one behind them."""
    made = written(Epoch(1, 0, WINDOWS))
    for partition in (0, 1):
        log = made.broker.log((SKETCHES, partition))
        records = [(each.key, each.value, each.timestamp) for each in log.values(committed=True)]
        made.broker.log((ROLLUPS, partition)).append([*records, records[4]])
    return made


def everything(log: CountingLog, topic: str) -> list[StoredRecord]:
    found = list(log.read(topic))
    log.read_records = 0
    return found


@pytest.mark.parametrize("topic", [SKETCHES, ROLLUPS])
@pytest.mark.parametrize("keys", [None, {A}, {b""}, set()])
@pytest.mark.parametrize(("since", "until"), [(0, 1 << 62), (2, 4), (3, 3), (WINDOWS + 1, WINDOWS + 9)])
def test_what_is_looked_up_is_what_reading_everything_finds(topics, topic, keys, since, until):
    since_ms, until_ms = (time if time in (0, 1 << 62) else quarter(time) for time in (since, until))
    log = topics.log()
    wanted = [
        each
        for each in everything(log, topic)
        if since_ms <= each.timestamp_ms <= until_ms and (keys is None or each.key in keys)
    ]
    assert list(log.look_up(topic, since_ms, until_ms, keys)) == wanted


@pytest.mark.parametrize("first", [1, 2])
def test_of_the_sketches_a_question_reads_its_span_and_little_more(first):
    """The slack is that of commits, whose control records are stamped by a clock, and a transaction at either end."""
    log = written(Epoch(first, 0, WINDOWS)).log()
    assert list(log.look_up(SKETCHES, quarter(50) + 1, quarter(60), {A}))
    assert 10 * 3 <= log.read_records <= 16 * 5 < WINDOWS
    log.read_records = 0
    assert list(log.markers(SKETCHES, quarter(50), quarter(150)))
    assert log.read_records <= 2 * 160 < 2 * 2 * 100, "what is between the two ends says nothing more"
    log.read_records = 0
    assert len({m.partition for m in map(decoded, log.markers(SKETCHES, FOREVER_MS, FOREVER_MS))}) == 2
    assert log.read_records <= 2 * 80


def decoded(record: StoredRecord) -> CloseMarker:
    return decode_marker(record.value)


def spans_of(log: CountingLog, since_ms: int, until_ms: int) -> list[tuple[int, int, str | None, int]]:
    found = map(decoded, log.markers(SKETCHES, since_ms, until_ms))
    return sorted({(m.partition, m.epoch, m.span, (m.through_ms - T0) // QUARTER_MS) for m in found})


def test_markers_are_those_about_the_two_times():
    log = written(Epoch(1, 0, WINDOWS)).log()
    assert spans_of(log, quarter(50), quarter(150)) == [(p, 1, None, n) for p in (0, 1) for n in (49, 50, 150)]
    last = [(p, 1, None, WINDOWS) for p in (0, 1)]
    assert spans_of(log, FOREVER_MS, FOREVER_MS) == spans_of(log, quarter(WINDOWS + 5), quarter(WINDOWS + 9)) == last
    assert {through for _, _, _, through in spans_of(log, 0, 0)} == {1}


def test_where_hours_are_released_too_the_markers_between_two_times_are_all_given():
    log = written(Epoch(1, 0, WINDOWS, hours=True)).log()
    hours = [through for partition, _, span, through in spans_of(log, quarter(50), quarter(60)) if span == "hour"]
    assert set(hours) >= {52, 56, 60}
    assert len(hours) >= 2 * 3


def late_finish(*, appended: frozenset[int] = frozenset()) -> Written:
    """Epoch 1 finishes its last ten windows when epoch 2 has closed twenty already."""
    first, second = (flat(e.records(Random(1), 0, 1)) for e in (Epoch(1, 0, 40), Epoch(2, 40, 80)))
    cut = next(at for at, each in enumerate(stored(first)) if each.timestamp_ms > quarter(30))
    middle = next(at for at, each in enumerate(stored(second)) if each.timestamp_ms > quarter(60))
    return Written().write([[*first[:cut], *second[:middle], *first[cut:], *second[middle:]]], appended=appended)


def test_windows_that_an_epoch_finishes_behind_the_next_one_are_found():
    log = late_finish().log()
    for since, until in ((25, 38), (35, 45), (39, 41)):
        ends = {
            (r.timestamp_ms - T0) // QUARTER_MS for r in log.look_up(SKETCHES, quarter(since), quarter(until), {b""})
        }
        assert ends == set(range(since, until + 1))
    assert (0, 2, None, 60) in spans_of(log, quarter(59), quarter(60))


def test_behind_the_start_of_its_epoch_a_question_does_not_wait_for_an_earlier_one():
    log = late_finish().log()
    assert {r.timestamp_ms for r in log.look_up(SKETCHES, quarter(45), quarter(50), {b""})}
    assert log.read_records <= 60


@pytest.mark.parametrize("until", [12, 30])
def test_records_that_the_broker_stamped_are_found_whatever_their_stamps_are(until):
    """The third transaction is of windows before the eighth, and stamped as the clock of the broker was: days later."""
    payloads = flat(Epoch(1, 0, WINDOWS).records(Random(1), 0, 1))
    appended = Written().write([payloads], late_ms=9 * DAY_MS, appended=frozenset({2, 5}))
    wanted = {each.value for each in stored(payloads) if quarter(4) < each.timestamp_ms <= quarter(until)}
    assert wanted <= {r.value for r in appended.log().look_up(SKETCHES, quarter(4) + 1, quarter(until))}


def test_records_are_found_by_their_offsets(topics):
    log = topics.log()
    records = [r for r in everything(log, SKETCHES) if r.partition == 1]
    wanted = [records[n] for n in (0, 1, 7, 30, 31, len(records) - 1)]
    assert list(log.at(SKETCHES, 1, [r.offset for r in wanted])) == wanted
    assert list(log.at(SKETCHES, 1, [])) == []


def test_bytes_that_are_no_record_end_no_reading():
    broker = FakeBroker()
    made = Written(broker).write([flat(Epoch(1, 0, 3).records(Random(1), 0, 1))])
    broker.log((SKETCHES, 0)).append([(b"", b"garbage", quarter(9)), (A, b"garbage", quarter(9))])
    broker.log((SKETCHES, 0)).append([(A, b"late", quarter(3))])
    found = list(made.log().look_up(SKETCHES, quarter(3), quarter(3), {A}))
    assert found[-1].value == b"late"
    assert b"garbage" in {each.value for each in made.log().markers(SKETCHES, quarter(2), FOREVER_MS)}
