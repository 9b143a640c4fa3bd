"""Records of an output file that are looked up by time and key: those that are asked for, and little else is read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.published_topics import T0, closed
from support.rollup_runs import QUARTER_MS, marker, release

from sfm_stream.errors import StateError
from sfm_stream.transport.files.log_reader import LogReader
from sfm_stream.transport.files.log_schema import first_damage, has_indexes
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Record, Step, StoredRecord
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.codec import decode_marker

KEYS = (b"", b"a", b"b", b"c")


class Counting(LogReader):
    """Counts the records that it takes out of the file."""

    taken = 0

    def _records(self, *arguments, **named):
        found = super()._records(*arguments, **named)
        self.taken += len(found)
        return found


def stamped(windows: int) -> list[Record]:
    """Three keys in each window, then its marker; a coarser window with the same end now and then; a late copy."""
    records = []
    for number in range(1, windows + 1):
        names = [*KEYS[1:], *(KEYS[1:3] if number % 4 == 0 else ()), KEYS[0]]
        records += [Record(SKETCHES, 0, key, b"%d" % len(records), number * 1000) for key in names]
    return [*records, Record(SKETCHES, 0, b"b", b"late", 2000), Record(SKETCHES, 2, b"b", b"other partition", 3000)]


def written(path: Path, records: list[Record]) -> str:
    log = SqliteLog(str(path))
    for start in range(0, len(records), 7):
        log.append("w", Step(tuple(records[start : start + 7])))
    log.close()
    return str(path)


def without_indexes(path: str) -> str:
    """As a release before this one leaves it."""
    db = sqlite3.connect(path)
    db.executescript("DROP INDEX records_by_time; DROP INDEX close_markers")
    db.close()
    return path


@pytest.fixture(params=["indexed", "of an earlier release"])
def reader(request, tmp_path) -> Iterator[LogReader]:
    path = written(tmp_path / "log.sqlite", stamped(40))
    reader = LogReader(path if request.param == "indexed" else without_indexes(path))
    yield reader
    reader.close()


def in_order(records: Iterator[StoredRecord]) -> list[StoredRecord]:
    return sorted(records, key=lambda each: (each.partition, each.offset))


@pytest.mark.parametrize("keys", [None, {b"b"}, {b"", b"c"}, {b"nobody"}, set()])
@pytest.mark.parametrize(("since", "until"), [(0, 1 << 62), (2000, 3000), (3001, 9999), (0, 1000), (41_000, 99_000)])
def test_what_is_looked_up_is_what_reading_everything_finds(reader, keys, since, until):
    everything = list(reader.read(SKETCHES))
    wanted = [r for r in everything if since <= r.timestamp_ms <= until and (keys is None or r.key in keys)]
    assert in_order(reader.look_up(SKETCHES, since, until, keys)) == wanted
    assert list(reader.look_up(ROLLUPS, since, until, keys)) == []


def test_more_records_of_one_stamp_than_a_page_holds_are_each_given_once(tmp_path):
    records = [Record(SKETCHES, 0, b"%d" % (n % 400), b"%d" % n, 1000) for n in range(1500)]
    reader = LogReader(written(tmp_path / "log.sqlite", records))
    assert in_order(reader.look_up(SKETCHES, 1000, 1000)) == list(reader.read(SKETCHES))
    assert len(list(reader.look_up(SKETCHES, 1000, 1000, {b"3"}))) == 4
    reader.close()


def test_a_page_of_large_records_is_short(tmp_path):
    records = [Record(SKETCHES, 0, b"a", bytes(3 << 20), n) for n in range(5)]
    reader = LogReader(written(tmp_path / "log.sqlite", records))
    assert len(reader.page(SKETCHES, 0, 0, 256)) == 2
    assert [r.offset for r in reader.read(SKETCHES)] == list(range(5))
    reader.close()


def test_pages_of_large_records_under_several_keys_give_each_once_in_order(tmp_path):
    records = [Record(SKETCHES, n % 2, b"%d" % (n % 3), bytes(1 << 20), n // 4) for n in range(24)]
    reader = Counting(written(tmp_path / "log.sqlite", records))
    found = list(reader.look_up(SKETCHES, 1, 5, {b"0", b"2", b"nobody"}))
    wanted = [r for r in reader.read(SKETCHES) if 1 <= r.timestamp_ms <= 5 and r.key != b"1"]
    assert found == sorted(wanted, key=lambda each: (each.timestamp_ms, each.key, each.partition, each.offset))
    assert len(found) > 10
    reader.close()


def test_under_more_keys_than_one_query_names_each_record_is_found_once(tmp_path):
    records = [Record(SKETCHES, 0, b"%d" % key, b"v", stamp) for stamp in (1000, 2000) for key in range(600)]
    reader = LogReader(written(tmp_path / "log.sqlite", records))
    found = list(reader.look_up(SKETCHES, 1, 5000, {record.key for record in records[50:]}))
    assert in_order(found) == list(reader.read(SKETCHES))
    assert found == sorted(found, key=lambda each: each.timestamp_ms)
    reader.close()


def test_who_needs_the_first_record_only_reads_few(tmp_path):
    reader = Counting(written(tmp_path / "log.sqlite", stamped(200)))
    assert next(reader.look_up(SKETCHES, 1000, 200_000, {b"a"})).timestamp_ms == 1000
    assert reader.taken <= 8
    reader.close()


def test_records_are_found_by_their_offsets(reader):
    everything = [r for r in reader.read(SKETCHES) if r.partition == 0]
    assert list(reader.at(SKETCHES, 0, [0, 5, 17])) == [everything[n] for n in (0, 5, 17)]
    with pytest.raises(StateError, match=r"offset 9999: the record is damaged or gone"):
        list(reader.at(SKETCHES, 0, [0, 9999]))


@pytest.mark.parametrize("length", [20, 200])
def test_as_much_is_read_however_long_the_history_is(tmp_path, length):
    path = written(tmp_path / "log.sqlite", stamped(length))
    reader = Counting(path)
    assert len(list(reader.look_up(SKETCHES, 8000, 9000, {b"a"}))) == reader.taken == 3
    assert len(list(reader.look_up(SKETCHES, 8000, 9000))) == 6 + 4
    assert reader.taken == 3 + 10
    reader.close()


def runs_of(windows: int, **other: object) -> list[bytes]:
    return [closed(n, n + 1, **other) for n in range(windows)]


def published_markers(windows: int) -> list[bytes]:
    """Two pipelines, two epochs, two partitions, spans of two names: seven runs, one of them of one marker."""
    named = {"span": "15m", "spans": ("15m", "hour")}
    hours = [
        marker(
            T0 + n * 4 * QUARTER_MS, T0 + (n + 1) * 4 * QUARTER_MS, 4 * QUARTER_MS, span="hour", spans=named["spans"]
        )
        for n in range(windows // 4)
    ]
    return [
        *runs_of(windows),
        *runs_of(windows, partition=1, partitions=2),
        *runs_of(windows, epoch=2),
        *runs_of(windows, pipeline="other"),
        *runs_of(windows, epoch=3, **named),
        *hours,
        closed(7, 8, epoch=300),
    ]


@pytest.mark.parametrize("since", [0, 5, 9])
@pytest.mark.parametrize("windows", [12, 60])
def test_of_each_run_of_markers_the_ends_are_read_and_those_at_the_times_that_are_asked_for(tmp_path, windows, since):
    records = [Record(SKETCHES, 0, b"", each, decode_marker(each).through_ms) for each in published_markers(windows)]
    records += [Record(SKETCHES, 0, b"a", release(T0), T0 + QUARTER_MS)]
    path = written(tmp_path / "log.sqlite", records)
    times = (T0 + since * QUARTER_MS, T0 + 9 * QUARTER_MS + 1)
    runs: dict[object, list[StoredRecord]] = {}
    everything = LogReader(path)
    for stored in everything.read(SKETCHES):
        if not stored.key:
            each = decode_marker(stored.value)
            runs.setdefault((each.pipeline, each.epoch, each.partition, each.span), []).append(stored)
    assert len(runs) == 7
    wanted = []
    for run in runs.values():
        in_time = [r for r in run if times[0] <= r.timestamp_ms <= times[1]]
        before = [r for r in run if decode_marker(r.value).start_ms < times[0]]
        behind = [r for r in run if r.timestamp_ms >= times[1]]
        wanted += [*before[-1:], *in_time[:1], *behind[:1]]
    reader = Counting(path)
    found = list(reader.markers(SKETCHES, *times))
    assert {r.offset for r in found} >= {r.offset for r in wanted}
    assert len(found) <= reader.taken <= 7 * 5, "the same, however long they are"
    reader.close()
    plain = LogReader(without_indexes(path))
    assert set(plain.markers(SKETCHES)) >= set(wanted)
    for each in (everything, plain):
        each.close()


def test_bytes_that_are_no_marker_hide_no_marker(tmp_path):
    records = [
        Record(SKETCHES, 0, b"", value, 1000) for value in (b"", b"\x9a", closed(0, 1), b"garbage", closed(1, 2))
    ]
    reader = LogReader(written(tmp_path / "log.sqlite", records))
    assert {r.value for r in reader.markers(SKETCHES)} == {r.value for r in records}
    reader.close()


FOREIGN = {
    "of other columns": "CREATE INDEX records_by_time ON records (topic, key)",
    "of a part": "CREATE INDEX records_by_time ON records (topic, timestamp_ms, key) WHERE key > x'61'",
    "of another table": "CREATE INDEX records_by_time ON positions (worker)",
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_an_index_of_another_program_under_our_name_is_not_used_and_the_next_run_replaces_it(tmp_path, kind):
    path = written(tmp_path / "log.sqlite", stamped(20))
    reader = LogReader(path)
    wanted = in_order(reader.look_up(SKETCHES, 2000, 5000, {b"a"}))
    reader.close()
    db = sqlite3.connect(path)
    db.executescript(f"DROP INDEX records_by_time; {FOREIGN[kind]}")
    reader = LogReader(path)
    assert in_order(reader.look_up(SKETCHES, 2000, 5000, {b"a"})) == wanted
    reader.close()
    SqliteLog(path).close()
    assert has_indexes(db)
    db.close()


def test_a_time_that_is_no_number_is_damage(tmp_path):
    path = written(tmp_path / "log.sqlite", stamped(20))
    db = sqlite3.connect(path)
    db.execute("UPDATE records SET timestamp_ms = 'soon' WHERE topic = 'sketches' AND partition = 0 AND offset = 9")
    db.commit()
    db.close()
    reader = LogReader(path)
    with pytest.raises(StateError, match="damaged"):
        list(reader.look_up(SKETCHES, 2000, 1 << 40))
    reader.close()


def test_what_was_there_is_found_while_a_writer_commits(tmp_path):
    path = written(tmp_path / "log.sqlite", stamped(20))
    reader, writer = LogReader(path), SqliteLog(path)
    before = list(reader.look_up(SKETCHES, 1000, 20_000, {b"a"}))
    found = []
    for number, each in enumerate(reader.look_up(SKETCHES, 1000, 20_000, {b"a"})):
        found.append(each)
        writer.append("w", Step((Record(SKETCHES, 0, b"a", b"new %d" % number, 21_000 + number),)))
    assert found == before
    writer.close()
    reader.close()


def test_a_writer_gives_indexes_to_a_file_of_an_earlier_release_and_the_earlier_release_goes_on_with_it(tmp_path):
    path = without_indexes(written(tmp_path / "log.sqlite", stamped(20)))
    reader = LogReader(path)
    before = in_order(reader.look_up(SKETCHES, 2000, 5000, {b"a"}))
    reader.close()
    db = sqlite3.connect(path)
    assert not has_indexes(db), "a reader writes nothing"
    SqliteLog(path).close()
    assert has_indexes(db)
    assert db.execute("PRAGMA user_version").fetchone() == (2,)
    (number,) = db.execute("SELECT max(offset) + 1 FROM records WHERE topic = 'sketches' AND partition = 0").fetchone()
    db.execute("INSERT INTO records VALUES ('sketches', 0, ?, 3000, x'61', x'00', 0)", (number,))
    db.rollback()
    db.close()
    reader = Counting(path)
    assert in_order(reader.look_up(SKETCHES, 2000, 5000, {b"a"})) == before
    assert reader.taken == len(before)
    reader.close()


def steps_of(db: sqlite3.Connection, read) -> int:
    """How many steps SQLite takes, in tens."""
    taken = 0

    def count():
        nonlocal taken
        taken += 1

    db.set_progress_handler(count, 10)
    read()
    db.set_progress_handler(None, 0)
    return taken


@pytest.mark.parametrize("keys", [{b"k00"}, {b"k00", b"k01"}])
def test_what_lies_beside_a_key_costs_nothing(tmp_path, keys):
    """Neither other keys in the same window, nor other windows: as few steps among 400 keys as among 8."""
    steps = []
    for name, count in (("few", 8), ("many", 400)):
        records = [
            Record(ROLLUPS, 0, b"k%02d" % key, b"v", 1000 * stamp) for stamp in range(1, 30) for key in range(count)
        ]
        reader = LogReader(written(tmp_path / name, records))
        found = list(reader.look_up(ROLLUPS, 5000, 9000, keys))
        assert len(found) == 5 * len(keys)
        # Once for what SQLite does only the first time.
        steps.append(steps_of(reader._db, lambda reader=reader: list(reader.look_up(ROLLUPS, 5000, 9000, keys))))
        reader.close()
    few, many = steps
    assert many <= few + 5


def test_opening_a_longer_file_takes_no_more_steps(tmp_path):
    steps = []
    for name, windows in (("short", 20), ("long", 2000)):
        path = written(tmp_path / name, stamped(windows))
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            assert first_damage(db) == ""
            steps.append(steps_of(db, lambda db=db: first_damage(db)))
    assert steps[1] <= steps[0] + 5


def test_stamps_can_be_chosen(reader):
    def chosen(stamp_ms: int) -> bool:
        return stamp_ms % 4000 == 0

    found = list(reader.look_up(SKETCHES, 3000, 12_000, stamped=chosen))
    assert in_order(found) == in_order(
        each for each in reader.look_up(SKETCHES, 3000, 12_000) if chosen(each.timestamp_ms)
    )
    assert {each.timestamp_ms for each in found} == {4000, 8000, 12_000}
    assert {each.key for each in reader.look_up(SKETCHES, keys={b"a"}, stamped=chosen)} == {b"a"}
