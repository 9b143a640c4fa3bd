"""The copy of public topics: what it keeps at which offsets, who may write it, and what becomes of a damaged one."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing

import pytest

from sfm_stream.errors import ConfigError, StateError
from sfm_stream.transport.files.log_reader import LogReader
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.transport.files.topic_cache import CacheReader, DamagedCopy, TopicCache, remove_cache
from sfm_stream.types import StoredRecord
from sfm_stream.units import ROLLUPS, SKETCHES

SOURCE = "sketches views.sketches id-1"


def stored(offset, key=b"k", partition=0):
    return StoredRecord(offset, partition, key, b"value %d" % offset, 1000 * offset)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "folder ?#%" / "views.topics.sqlite")


@pytest.fixture
def cache(path):
    with closing(TopicCache(path)) as cache:
        yield cache


def test_records_keep_their_offsets_whatever_lies_between(cache, path):
    records = [stored(3), stored(4, b"j"), stored(9), stored(12, b"")]
    cache.add(SOURCE, SKETCHES, 0, records, 14)
    with closing(CacheReader(path)) as reader:
        assert list(reader.read(SKETCHES)) == records
        assert list(reader.read(SKETCHES, offset=5)) == records[2:]
        assert list(reader.at(SKETCHES, 0, [3, 5, 9])) == [records[0], records[2]]
        assert list(reader.look_up(SKETCHES, 4000, 9000, {b"k"})) == [records[2]]
        assert list(reader.keys(SKETCHES)) == [b"j", b"k"]
        assert list(reader.keys(ROLLUPS)) == []
    assert cache.copied() == {SOURCE: {0: 14}}


def test_only_its_owner_may_read_it(cache, path):
    cache.add(SOURCE, SKETCHES, 0, [stored(0)], 1)
    folder = os.path.dirname(path)
    modes = {name: stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) for name in os.listdir(folder)}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert len(modes) == 4  # the lock, and what SQLite keeps beside a file that is written


def test_a_step_is_whole_or_not_at_all(cache):
    cache.add(SOURCE, SKETCHES, 0, [stored(0)], 1)
    with pytest.raises(AttributeError):
        cache.add(SOURCE, SKETCHES, 0, [stored(1), None], 2)
    with pytest.raises(StateError, match="cannot write"):
        cache.add(SOURCE, SKETCHES, 0, [stored(1), StoredRecord(2, 0, b"k", object(), 0)], 3)
    assert [each.offset for each in cache.read(SKETCHES)] == [0]
    assert cache.copied() == {SOURCE: {0: 1}}
    cache.add(SOURCE, SKETCHES, 0, [stored(0), stored(1)], 2)
    assert [each.offset for each in cache.read(SKETCHES)] == [0, 1]


def test_what_a_topic_has_no_more_goes_with_its_keys(cache):
    cache.add(SOURCE, SKETCHES, 0, [stored(0, b"old"), stored(1, b"both"), stored(2, b"both"), stored(3, b"")], 4)
    cache.add(SOURCE, SKETCHES, 1, [stored(0, b"there", 1)], 1)
    cache.forget(SKETCHES, {0: 0, 1: 0})
    assert list(cache.keys(SKETCHES)) == [b"both", b"old", b"there"]
    cache.forget(SKETCHES, {0: 2, 1: 0})
    assert list(cache.keys(SKETCHES)) == [b"both", b"there"]
    assert [(each.partition, each.offset) for each in cache.read(SKETCHES)] == [(0, 2), (0, 3), (1, 0)]


def test_it_can_be_emptied_while_it_is_read(cache, path):
    cache.add(SOURCE, SKETCHES, 0, [stored(0), stored(1)], 2)
    with closing(CacheReader(path)) as reader:
        records = reader.read(SKETCHES)
        assert next(records).offset == 0
        cache.clear()
        assert cache.copied() == {}
        assert list(reader.read(SKETCHES)) == []
        assert list(reader.keys(SKETCHES)) == []


def test_it_has_one_writer(cache, path):
    with pytest.raises(StateError, match=rf"another process \({os.getpid()}\).*serve.cache"):
        TopicCache(path)
    cache.close()
    TopicCache(path).close()


def test_it_is_seen_to_be_gone_or_another_file(cache, path):
    assert cache.is_there
    os.rename(path, path + ".away")
    assert not cache.is_there
    cache.close()
    # What SQLite left beside it belongs to the file that is gone.
    with closing(TopicCache(path)) as anew:
        assert anew.copied() == {}


def test_a_copy_is_no_output_and_an_output_no_copy(cache, path, tmp_path):
    cache.close()
    for opened in (LogReader, SqliteLog):
        with pytest.raises(StateError, match="belongs to another program"):
            opened(path)
    output = str(tmp_path / "out.sqlite")
    SqliteLog(output).close()
    for opened in (CacheReader, TopicCache):
        with pytest.raises(StateError, match="belongs to another program"):
            opened(output)
    assert os.path.exists(output)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"serve\.cache: cannot open"):
        TopicCache(str(tmp_path / "file" / "views.topics.sqlite"))


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE records SET value = x'00'",
        "UPDATE records SET value = value || x'ff'",
        "UPDATE positions SET offset = 7",
    ],
)
def test_a_changed_row_is_damage_with_what_to_do(cache, path, damage):
    cache.add(SOURCE, SKETCHES, 0, [stored(0)], 1)
    with closing(sqlite3.connect(path)) as db:
        db.execute(damage)
        db.commit()
    with pytest.raises(DamagedCopy, match="Delete it: it is copied again"):
        list(cache.read(SKETCHES)) and cache.copied()


def test_a_changed_page_is_damage_too(cache, path):
    cache.add(SOURCE, SKETCHES, 0, [stored(n) for n in range(2000)], 2000)
    cache.close()
    with open(path, "r+b") as file:
        file.seek(8 * 4096)
        file.write(b"\xff" * 4096 * 20)
    with pytest.raises(DamagedCopy), closing(CacheReader(path)) as reader:
        list(reader.read(SKETCHES))
    remove_cache(path)
    remove_cache(path)
    assert not os.path.exists(path)
