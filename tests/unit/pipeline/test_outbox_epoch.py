"""Which record of an outbox may follow: every row of the table, and every sequence of records against plain sets."""

from __future__ import annotations

from itertools import product

from sfm_stream.pipeline.outbox_epoch import OutboxEpoch, ReleaseRead
from sfm_stream.types import Window

SPAN = None
FIRST, SECOND = Window(0, 10), Window(10, 20)
LONG = Window(0, 20)


def test_before_the_first_marker():
    epoch = OutboxEpoch()
    assert epoch.release(b"a", b"1", SPAN, SECOND, 5) is ReleaseRead.NEW
    assert epoch.release(b"a", b"1", SPAN, SECOND, 6) is ReleaseRead.REPEATED
    assert epoch.release(b"a", b"2", SPAN, SECOND, 7) is ReleaseRead.SECOND_PAYLOAD
    assert epoch.release(b"b", b"2", SPAN, FIRST, 8) is ReleaseRead.NEW
    assert all(epoch.follows(SPAN, start, b"m") for start in (0, 10, 1000))
    assert epoch.first_open_offset == 5


def test_behind_a_marker():
    epoch = OutboxEpoch()
    epoch.release(b"a", b"1", SPAN, FIRST, 5)
    epoch.release(b"b", b"1", SPAN, SECOND, 6)
    epoch.marker(SPAN, 10, b"m")
    assert epoch.release(b"a", b"1", SPAN, FIRST, 7) is ReleaseRead.BEHIND_MARKER, "even the same once more"
    assert epoch.release(b"c", b"1", SPAN, FIRST, 8) is ReleaseRead.BEHIND_MARKER
    assert epoch.release(b"b", b"1", SPAN, SECOND, 9) is ReleaseRead.REPEATED, "its window is not closed"
    assert epoch.release(b"b", b"2", SPAN, SECOND, 10) is ReleaseRead.SECOND_PAYLOAD
    assert epoch.release(b"d", b"1", SPAN, SECOND, 11) is ReleaseRead.NEW


def test_a_marker_follows_at_the_end_of_the_last_or_as_the_last_once_more():
    epoch = OutboxEpoch()
    epoch.marker(SPAN, 10, b"m")
    assert epoch.follows(SPAN, 10, b"n")
    assert epoch.follows(SPAN, 0, b"m"), "the same once more"
    assert not epoch.follows(SPAN, 0, b"n"), "the same range with another content"
    assert not epoch.follows(SPAN, 20, b"n"), "a gap"
    epoch.marker(SPAN, 20, b"n")
    assert not epoch.follows(SPAN, 0, b"m"), "only the last one may come again"


def test_a_successor_reads_from_the_first_release_that_no_marker_has_closed():
    epoch = OutboxEpoch()
    assert epoch.first_open_offset is None
    for offset, (release_id, window) in enumerate([(b"a", FIRST), (b"b", SECOND), (b"c", SECOND)], 5):
        epoch.release(release_id, b"1", SPAN, window, offset)
    assert epoch.first_open_offset == 5
    epoch.marker(SPAN, 10, b"m")
    assert epoch.first_open_offset == 6
    epoch.marker(SPAN, 20, b"n")
    assert epoch.first_open_offset is None
    assert not epoch.open_releases


def test_markers_of_one_span_say_nothing_of_another():
    epoch = OutboxEpoch()
    epoch.release(b"a", b"1", "10s", FIRST, 5)
    epoch.release(b"l", b"1", "20s", LONG, 6)
    assert all(epoch.follows("20s", start, b"m") for start in (0, 20, 1000))
    epoch.marker("10s", 10, b"m")
    epoch.marker("10s", 20, b"n")
    assert epoch.first_open_offset == 6, "the longer window is open"
    assert epoch.release(b"l", b"1", "20s", LONG, 7) is ReleaseRead.REPEATED
    assert epoch.release(b"l", b"2", "20s", LONG, 8) is ReleaseRead.SECOND_PAYLOAD
    assert epoch.release(b"k", b"1", "20s", LONG, 9) is ReleaseRead.NEW
    assert epoch.follows("20s", 0, b"o")
    epoch.marker("20s", 20, b"o")
    assert epoch.first_open_offset is None
    assert epoch.release(b"l", b"1", "20s", LONG, 10) is ReleaseRead.BEHIND_MARKER
    assert (epoch.through_ms("10s"), epoch.through_ms("20s"), epoch.through_ms("day")) == (20, 20, None)
    assert epoch.follows("10s", 20, b"p")
    assert not epoch.follows("20s", 10, b"p")


def test_an_id_is_one_release_whatever_span_it_names():
    epoch = OutboxEpoch()
    assert epoch.release(b"a", b"1", "20s", LONG, 5) is ReleaseRead.NEW
    assert epoch.release(b"a", b"2", "day", LONG, 6) is ReleaseRead.SECOND_PAYLOAD


def test_the_first_record_says_whether_those_of_the_epoch_name_their_span():
    """Else a release that a marker closed under one name would be new under the other."""
    for first, others in (("10s", [None]), (None, ["10s", "day"])):
        epoch = OutboxEpoch()
        assert epoch.agrees(first)
        assert epoch.agrees(first)
        assert not any(epoch.agrees(other) for other in others)
    epoch = OutboxEpoch()
    assert all(epoch.agrees(span) for span in ("10s", "day", "month"))


RELEASES = [(release_id, digest, window) for release_id in b"ab" for digest in b"12" for window in (FIRST, SECOND)]
MARKERS = [(0, 10), (10, 20)]


def test_every_sequence_of_four_records():
    for records in product([*RELEASES, *MARKERS], repeat=4):
        epoch, through, last, payloads = OutboxEpoch(), None, None, {}
        for offset, record in enumerate(records):
            if record in MARKERS:
                start, end = record
                follows = through is None or start == through or record == last
                assert epoch.follows(SPAN, start, bytes(record)) == follows
                if not follows:
                    break
                epoch.marker(SPAN, end, bytes(record))
                through, last = end, record
                continue
            name, digest, window = record
            read = epoch.release(bytes([name]) + bytes([window.start_ms]), bytes([digest]), SPAN, window, offset)
            place = name, window
            if through is not None and window.start_ms < through:
                assert read is ReleaseRead.BEHIND_MARKER
            elif place not in payloads:
                assert read is ReleaseRead.NEW
                payloads[place] = (digest, offset)
            else:
                same = payloads[place][0] == digest
                assert read is (ReleaseRead.REPEATED if same else ReleaseRead.SECOND_PAYLOAD)
        still_open = [at for (_, window), (_, at) in payloads.items() if through is None or window.end_ms > through]
        assert epoch.first_open_offset == min(still_open, default=None)
