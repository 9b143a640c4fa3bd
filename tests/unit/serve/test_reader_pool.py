"""Readers that are lent for one question each: kept, replaced with their file, and ended where it takes too long."""

from __future__ import annotations

import itertools
import os
import threading

import pytest

from sfm_stream.errors import StateError
from sfm_stream.serve import turns
from sfm_stream.serve.reader_pool import ReaderPool
from sfm_stream.serve.refusals import NotNow, TooMuchAsked
from sfm_stream.serve.turns import Turns
from sfm_stream.transport.files.log_reader import LogReader
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Record, Step
from sfm_stream.units import SKETCHES


def write(path, *values):
    log = SqliteLog(path)
    log.append("w", Step(tuple(Record(SKETCHES, 0, b"k", value, 1000) for value in values)))
    log.close()


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "out.sqlite")
    write(path, b"first")
    return path


@pytest.fixture
def pool(path):
    pool = ReaderPool("views", path, LogReader, Turns(2, 60_000))
    yield pool
    pool.close()


def values(reader):
    return [each.value for each in reader.read(SKETCHES)]


def test_one_reader_serves_one_question_after_the_other(pool):
    with pool.reader() as first:
        assert values(first) == [b"first"]
        with pool.reader() as second:
            assert second is not first
    with pool.reader() as third:
        assert third in (first, second)


def test_another_file_has_another_reader(pool, path):
    with pool.reader() as before:
        os.remove(path)
        write(path, b"second")
        assert values(before) == [b"first"]
    with pool.reader() as after:
        assert values(after) == [b"second"]
    os.remove(path)
    with pytest.raises(NotNow, match="its output file is not there"), pool.reader():
        pass


def test_a_reader_that_met_an_error_is_not_lent_again(pool):
    with pytest.raises(ZeroDivisionError), pool.reader() as met:
        raise ZeroDivisionError
    with pool.reader() as other:
        assert other is not met
    with pytest.raises(StateError):
        values(met)


def test_a_question_ends_when_its_time_is_over(pool, monkeypatch):
    with pool.reader() as reader:
        assert values(reader) == [b"first"]
        monkeypatch.setattr(turns, "monotonic_s", itertools.count(1e9).__next__)
        with pytest.raises(TooMuchAsked, match=r"ended after 1m \(serve\.max_time\)"):
            values(reader)
    monkeypatch.undo()
    # The next one has its own time.
    with pool.reader() as reader:
        assert values(reader) == [b"first"]
    with pool.lent() as reader:
        monkeypatch.setattr(turns, "monotonic_s", itertools.count(1e9).__next__)
        assert values(reader) == [b"first"]


def test_more_questions_than_are_allowed_wait_and_are_refused_in_the_end(pool, monkeypatch):
    monkeypatch.setattr(turns, "_WAIT_S", 0.01)
    with pool.reader(), pool.reader():
        with pytest.raises(NotNow, match=r"serve\.max_questions"), pool.reader():
            pass
        monkeypatch.setattr(turns, "_WAIT_S", 300)
        answered = []

        def ask():
            with pool.reader() as reader:
                answered.append(values(reader))

        waiting = threading.Thread(target=ask)
        waiting.start()
    waiting.join(300)
    assert answered == [[b"first"]]


def test_no_two_files_are_taken_for_one(pool, path):
    """Numbers of deleted files are given again: a file is held open until another one is at its path."""
    seen = set()
    for number in range(4):
        os.remove(path)
        write(path, b"%d" % number)
        with pool.lent() as reader:
            assert values(reader) == [b"%d" % number]
            seen.add(pool.files)
        with pool.lent():
            assert pool.files in seen
    assert len(seen) == 4


def test_a_file_that_its_writer_has_just_made_is_waited_for(pool, path):
    os.remove(path)
    open(path, "xb").close()
    with pytest.raises(NotNow, match="its output file is empty"), pool.lent():
        pass


def test_what_is_wrong_with_a_file_is_told_without_its_path_and_logged_with_it(pool, path, caplog):
    os.remove(path)
    with open(path, "wb") as file:
        file.write(b"no log" * 1000)
    for _ in range(2):
        with pytest.raises(StateError, match="the file of views: cannot open") as told, pool.lent():
            pass
        assert os.path.dirname(path) not in str(told.value)
    assert [path in line for line in caplog.messages] == [True]
