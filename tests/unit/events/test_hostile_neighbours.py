"""The whole pipeline on neighbours whose item is none: what cannot be read of one record moves nobody else's.

100 records of other people in minute 0, one record of X in a later minute, 100 more of minute 0, no grace: where X's
record moves the clock, the last hundred are late, and so they must be where X's item is blanked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from support.counting_runs import PRESENCE, Log, Same, contents, declared, first_state, plan_of, table_of
from support.embedded_runs import MINUTE_MS, START_MS, NoFlips, payloads, run_here, write_config
from support.neighbour_runs import FORM, REAL, assert_alike, run
from support.neighbours import assert_one_cell

from sfm_stream.events.extract import PythonExtractor
from sfm_stream.events.formats.format import Fields
from sfm_stream.events.formats.json_strict import StrictReader
from sfm_stream.events.formats.registry import format_of
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.pipeline.counting.plan import Limits
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.types import InputEnd, Reason, Record
from sfm_stream.units import SKETCHES
from sfm_stream.wire.codec import decode
from sfm_stream.wire.keys import encode_key

ITEMS: dict[str, tuple[Reason, bytes]] = {
    "counted": (Reason.OK, b'"X"'),
    "over a megabyte": (Reason.RECORD_TOO_LONG, b'"' + b"x" * (1 << 20) + b'"'),
    "over a megabyte of brackets": (Reason.RECORD_TOO_LONG, b"[" * (1 << 19) + b"]" * (1 << 19)),
    "not UTF-8": (Reason.ITEM_NOT_UNICODE, b'"Ann \xff"'),
    "bytes without quotes": (Reason.NOT_UTF8, b"\xfe\xff"),
    "lone surrogate": (Reason.ITEM_NOT_UNICODE, b'"Ann \\ud83d"'),
    "NaN": (Reason.ITEM_NOT_FINITE, b"NaN"),
    "Infinity": (Reason.ITEM_NOT_FINITE, b"-Infinity"),
    "300 deep": (Reason.MALFORMED, b"[" * 300 + b"]" * 300),
    "300 objects deep": (Reason.MALFORMED, b'{"t":' * 300 + b"1" + b"}" * 300),
    "unfinished number": (Reason.MALFORMED, b"1."),
    "leading zero": (Reason.MALFORMED, b"007"),
    "bare word": (Reason.MALFORMED, b"Ann"),
    "single quotes": (Reason.MALFORMED, b"'Ann'"),
    "control character": (Reason.MALFORMED, b'"\x01"'),
    "unknown escape": (Reason.MALFORMED, b'"\\q"'),
    "nothing": (Reason.MALFORMED, b""),
    "two texts": (Reason.MALFORMED, b'"Ann" "Smith"'),
    "broken object": (Reason.MALFORMED, b'{"t":7,"t"]'),
    "given twice": (Reason.DUPLICATE_FIELD, b'"X","i":"X"'),
    "missing": (Reason.ITEM_MISSING, b"null"),
    "a word": (Reason.ITEM_TYPE, b"true"),
    "an object": (Reason.ITEM_TYPE, b'{"t":7}'),
    "a fraction": (Reason.ITEM_TYPE, b"1.5"),
    "beyond int64": (Reason.ITEM_RANGE, b"9" * 30),
}
NOT_BY_ITEM = {
    *(Reason.TOMBSTONE, Reason.FRAMED),  # by the first byte of a record
    *(reason for reason in Reason if Reason.TIME_MISSING <= reason <= Reason.KEY_NOT_UNICODE),
}
CASES = pytest.mark.parametrize("what", ITEMS)
SIZE = 10
"""Of a window, in the milliseconds of the pure pipeline."""


def test_every_reason_that_an_item_can_cause_is_here() -> None:
    caused = {reason for reason, _ in ITEMS.values()}
    assert caused | NOT_BY_ITEM == {reason for reason in Reason if reason < Reason.FUTURE}
    assert not caused & NOT_BY_ITEM


@dataclass
class Batch:
    """Values by offset, and their arrival times where a log gave them."""

    partition = 0
    first: int
    rows: list[tuple[int, bytes, int]]
    next_offset: int
    stamped: bool

    @property
    def count(self):
        return len(self.rows)

    def offsets(self):
        return np.array([offset for offset, _, _ in self.rows], np.int64)

    def arrivals(self):
        return np.array([arrival for _, _, arrival in self.rows], np.int64) if self.stamped else None

    def keys(self):
        return [None] * self.count

    def values(self):
        return [value for _, value, _ in self.rows]


def value(item: bytes, time: int, key: bytes = b'"a"', order: int = 0) -> bytes:
    """The item before, between or behind the fields that decide."""
    members = [b'"t":%d' % time, b'"k":%b' % key]
    members.insert(order % 3, b'"i":' + item)
    return b"{" + b",".join(members) + b"}"


def others(count: int) -> list[tuple[bytes, int]]:
    """Values and times of other people, in window 0."""
    return [(value(b'"u%d"' % (n % 100), 5), 5) for n in range(count)]


def places(records: int) -> list[int]:
    return [0, records // 2, records]


def batches(rows: list[tuple[bytes, int]], stamped: bool = False, missing: int = -1) -> list[Batch]:
    """Three batches; the record at `missing` is not there, and its offset is."""
    numbered = [(offset, *row) for offset, row in enumerate(rows) if offset != missing]
    third = len(rows) // 3
    borders = [0, third, 2 * third, len(rows)]
    return [Batch(a, [row for row in numbered if a <= row[0] < b], b, stamped) for a, b in pairwise(borders)]


DECLARED = declared("a", "b")


def check_blanked(what: str, stamped: bool, keys=DECLARED, wide: int = 200) -> None:
    """Of X's record at every place and in every window; the item stands at every place of it."""
    _, item = ITEMS[what]
    for window in range(4):
        for number, place in enumerate(places(wide)):
            rows = others(wide)
            late = others(1)[0][0].replace(b'"t":5', b'"t":%d' % (45 if stamped else 55)), 55
            pair = []
            for own in (item, b"null"):
                moved = (value(own, 5 + window * SIZE, order=number), 5 + window * SIZE)
                pair.append(batches([*rows[:place], moved, *rows[place:], late], stamped))
            assert_alike(REAL, plan_of(keys, skew=20 if stamped else 0), *pair)


@CASES
def test_in_a_file_an_item_of_any_content_moves_at_most_its_own_cell(what: str) -> None:
    check_blanked(what, stamped=False)


@CASES
def test_where_producers_give_the_time_too(what: str) -> None:
    check_blanked(what, stamped=True)


@CASES
def test_with_keys_whose_presence_is_public_too(what: str) -> None:
    """Other people keep the key present in the window of X."""
    item = ITEMS[what][1]
    other = (value(b'"someone"', 25), 25)
    for place in places(100):
        pair = []
        for own in (item, b"null"):
            rows = [*others(100), other]
            pair.append(batches([*rows[:place], (value(own, 25), 25), *rows[place:]]))
        assert_alike(REAL, plan_of(PRESENCE), *pair)


@CASES
def test_where_the_log_gives_the_time_a_record_with_any_item_may_as_well_be_missing(what: str) -> None:
    item = ITEMS[what][1]
    for place in (0, 30, 59):
        rows = [(value(b'"u%d"' % n, n // 2), n // 2) for n in range(60)]
        arrival = place // 2
        rows = [*rows[:place], (value(item, arrival), arrival), *rows[place:], (value(b'"end"', 50), 50)]
        plan = plan_of(DECLARED, unit="removed", skew=20)
        assert_alike(REAL, plan, batches(rows, True), batches(rows, True, missing=place))


def counted(what: str, item: bytes, wide: int = 100) -> tuple[Log, dict[Reason, int]]:
    """The example: people, X in window 2, the same people; what was released, and what was dropped."""
    rows = [*others(wide), (value(item, 25), 25), *others(wide)]
    plan = replace(plan_of(DECLARED), limits=Limits())
    extractor = PythonExtractor(format_of(FORM), plan.spans[0].shape, keys=(keys := table_of(plan)))
    counter = WindowCounter(plan, 0, first_state(plan), keys, Same(255))
    dropped: dict[Reason, int] = {}
    for batch in batches(rows):
        for reason, count in counter.add(extractor.columns([batch])).counts.items():
            dropped[reason] = dropped.get(reason, 0) + count
    return run(REAL, plan, batches(rows), Same(255)), dropped


@CASES
def test_the_clock_goes_on_whatever_the_item_is(what: str) -> None:
    """Each case says what it is meant to say, and does close the window of the others."""
    reason, item = ITEMS[what]
    log, dropped = counted(what, item)
    assert dropped == {Reason.LATE: 100} | ({reason: 1} if reason else {})
    assert set(contents(log.records)) >= {(0, encode_key("a")), (20, encode_key("a"))}


UNREADABLE = [name for name, (reason, _) in ITEMS.items() if Reason.OK < reason <= Reason.MALFORMED]


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_reader_that_gives_no_time_for_what_it_cannot_read_is_caught(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StrictReader, "_scanned", lambda self, reason, value: Fields(reason, key=(None,)))
    with pytest.raises(AssertionError, match=r"^(releases|cells): "):
        check_blanked(what, stamped=False)


# On real files


def embedded_value(item: bytes, minute: int, order: int = 1) -> bytes:
    raw = value(item, START_MS + minute * MINUTE_MS + 1, order=order)
    return raw.replace(b'"t":', b'"at":').replace(b'"k":', b'"page":').replace(b'"i":', b'"user":')


def run_file(folder, lines: list[bytes], **settings) -> list[Record]:
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    (folder / "in.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    run_here(write_config(folder, **{"size": "1m", "grace": "0s", "complete": "false"} | settings), NoFlips())
    return payloads(folder / "out.sqlite", SKETCHES)


def assert_one_cell_of(one: list[bytes], other: list[bytes]) -> None:
    def as_records(values: list[bytes]) -> list[Record]:
        return [Record(SKETCHES, 0, getattr(decode(v), "key", b"") or b"", v, 0) for v in values]

    assert_one_cell(as_records(one), as_records(other))


PLACES = [(0, 1), (100, 2), (200, 2), (204, 4)]
"""Of X's record among the lines, and its minute."""


def lines_with(item: bytes, place: int, minute: int) -> list[bytes]:
    """People in minute 0, twice; somebody in each minute of X, who has the key too; a last record that closes all."""
    people = [embedded_value(b'"u%d"' % n, 0) for n in range(100)]
    present = [embedded_value(b'"else"', minute) for minute in (0, 1, 2)]
    rows = [*people, *people, *present, embedded_value(b'"else"', 4)]
    rows.insert(place, embedded_value(item, minute, order=minute))
    return [*rows, embedded_value(b'"end"', 6)]


@pytest.fixture(scope="module")
def blanked_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blanked")
    return {at: run_file(folder, lines_with(b"null", *at)) for at in PLACES}


@CASES
def test_real_files(what: str, tmp_path, blanked_files) -> None:
    """A file that may grow, so that its windows are closed by the clock."""
    at = PLACES[list(ITEMS).index(what) % len(PLACES)]
    published = run_file(tmp_path / "run", lines_with(ITEMS[what][1], *at))
    assert_one_cell_of(published, blanked_files[at])
    assert len(published) >= 5, "windows were closed"


def test_a_line_longer_than_a_record_may_be_gives_its_time_up_to_a_bound(tmp_path) -> None:
    """Behind the bound a line is cut: then a field that follows is not found."""
    form = replace(FORM, max_record_bytes=100)
    path = tmp_path / "in.jsonl"
    rows = [value(b'"%b"' % (b"x" * length), 25, order=0) for length in (10, 90, 1000, 4000)]
    path.write_bytes(b"\n".join([*rows, value(b'"%b"' % (b"x" * 4000), 25, order=2)]))
    lines = LineInput(str(path), complete=True, max_line_bytes=2000, chunk_bytes=64)
    times, reasons = [], []
    extractor = PythonExtractor(format_of(form), plan_of().spans[0].shape, keys=table_of(plan_of()))
    while not isinstance(batch := lines.read(0), InputEnd):
        if batch is not None:
            columns = extractor.columns([batch])
            times += columns.event_ms.tolist()
            reasons += columns.reasons.tolist()
    lines.close()
    assert times == [25, 25, 25, -1, 25]
    assert reasons == [Reason.OK, *[Reason.RECORD_TOO_LONG] * 4]
