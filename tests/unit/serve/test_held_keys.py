"""Published keys that a server holds: as a reader finds them, from as many records as came since."""

from __future__ import annotations

import os
import shutil
from contextlib import closing

import pytest
from support.published_topics import T0, closed
from support.rollup_runs import QUARTER_MS, release

from sfm_stream.answers.known_keys import known_keys
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.errors import StateError
from sfm_stream.serve.held_keys import HeldKeys
from sfm_stream.serve.reader_pool import file_at
from sfm_stream.transport.files.log_reader import LogReader
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Record, Step
from sfm_stream.units import SKETCHES
from sfm_stream.wire.codec import decode_release

VIEWS, OTHER = ReleaseTerms("views"), ReleaseTerms("other")


class Counting(LogReader):
    """Counts the records that it takes out of the file, and how often it goes through all keys."""

    taken = listed = 0

    def _records(self, *arguments, **named):
        found = super()._records(*arguments, **named)
        self.taken += len(found)
        return found

    def keys(self, topic):
        self.listed += 1
        return super().keys(topic)


def publish(path, first, windows, keys, partition=0, **other):
    """So many windows with a release of each key, each with its marker."""
    records = []
    for number in range(first, first + windows):
        for key in keys:
            value = release(T0 + number * QUARTER_MS, key, partition=partition, **other)
            records.append(Record(SKETCHES, partition, decode_release(value).key, value, T0))
        records.append(Record(SKETCHES, partition, b"", closed(number, number + 1, partition=partition, **other), T0))
    with closing(SqliteLog(str(path))) as log:
        log.append("w", Step(tuple(records)))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "out.sqlite"
    publish(path, 0, 10, ["b", "d"])
    return path


@pytest.fixture
def reader(path):
    with closing(Counting(str(path))) as reader:
        yield reader


def held_of(path, pipeline="views"):
    return HeldKeys(pipeline, lambda: file_at(str(path)))


def keys_of(reader, held=None, terms=VIEWS, **asked):
    return [key for (key,) in known_keys(reader, terms, held=held and held.behind, **asked).keys]


@pytest.mark.parametrize("windows", [10, 600])
def test_as_much_is_read_for_a_page_of_keys_however_long_the_history_is(path, reader, windows):
    publish(path, 10, windows, ["b", "d"])
    held = held_of(path)
    assert keys_of(reader, held) == ["b", "d"]
    reader.taken = reader.listed = 0
    assert keys_of(reader, held) == keys_of(reader, held, search="B") + keys_of(reader, held, after=("b",))
    assert (reader.taken, reader.listed) == (3 * 2, 0), "the last record and the last release, for each of the three"
    publish(path, 10 + windows, 1, ["a", "d", "e"])
    reader.taken = 0
    assert keys_of(reader, held) == ["a", "b", "d", "e"] == keys_of(reader)
    assert reader.taken <= 2 + 4 + 10, "those two, what came since, and the markers of the reader's own"


def test_a_partition_that_comes_later_is_read_from_its_beginning(path, reader):
    held = held_of(path)
    assert keys_of(reader, held) == ["b", "d"]
    publish(path, 0, 2, ["c"], partition=1, partitions=2)
    assert keys_of(reader, held) == ["b", "c", "d"] == keys_of(reader)


def test_each_pipeline_of_a_shared_file_has_its_own_keys_whoever_comes_first(path, reader):
    held, others = held_of(path), held_of(path, "other")
    assert (keys_of(reader, held), keys_of(reader, others, OTHER)) == (["b", "d"], [])
    publish(path, 0, 3, ["a", "b"], pipeline="other")
    late = held_of(path)
    for each in (held, late):
        assert keys_of(reader, each) == ["b", "d"] == keys_of(reader)
    assert keys_of(reader, others, OTHER) == ["a", "b"] == keys_of(reader, terms=OTHER)


def test_another_file_is_read_anew(path, tmp_path, reader):
    held = held_of(path)
    assert keys_of(reader, held) == ["b", "d"]
    publish(tmp_path / "other.sqlite", 0, 12, ["a", "b"])
    os.replace(tmp_path / "other.sqlite", path)
    with closing(LogReader(str(path))) as other:
        assert keys_of(other, held) == ["a", "b"]


@pytest.mark.parametrize("windows", [2, 10, 12])
@pytest.mark.parametrize("keys", [["a", "b"], ["a", "b", "c"]])
def test_a_file_with_another_content_under_the_same_name_is_read_anew(path, tmp_path, windows, keys):
    """With two keys its last marker stands where that of the other one stood, and is the same."""
    held = HeldKeys("views", lambda: "the same, for all that is known of it")
    with closing(LogReader(str(path))) as before:
        assert keys_of(before, held) == ["b", "d"]
    publish(tmp_path / "other.sqlite", 0, windows, keys)
    shutil.copy(tmp_path / "other.sqlite", path)
    with closing(LogReader(str(path))) as other:
        assert keys_of(other, held) == keys


def test_after_an_error_it_goes_on(path, reader):
    held = held_of(path)
    assert keys_of(reader, held) == ["b", "d"]
    publish(path, 10, 1, ["c"])

    def refuse():
        raise StateError("ended")

    reader.before_query = refuse
    with pytest.raises(StateError, match="ended"):
        keys_of(reader, held)
    reader.before_query = lambda: None
    assert keys_of(reader, held) == ["b", "c", "d"]
