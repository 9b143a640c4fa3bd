"""Temporary tables of a question: what happens where they cannot be written."""

import pytest

from sfm_stream.answers.scratch import Scratch
from sfm_stream.errors import StorageError

ROWS = [(number, bytes(1000)) for number in range(100)]


def test_rows_that_a_disk_has_no_room_for_are_a_fault_that_says_what_to_do():
    held = Scratch("CREATE TABLE held (number INTEGER, value BLOB)")
    held.run("PRAGMA max_page_count = 10")
    with pytest.raises(StorageError, match=r"SQLITE_FULL\)\. Make room .* SQLITE_TMPDIR, and ask again"):
        held.run_each("INSERT INTO held VALUES (?, ?)", ROWS)


def test_tables_that_cannot_be_made_are_the_same_fault():
    with pytest.raises(StorageError, match="a temporary file cannot hold what is answered"):
        Scratch("CREATE TABLE held (number INTEGER")


def test_rows_are_given_back_in_order():
    held = Scratch("CREATE TABLE held (number INTEGER, value BLOB)")
    held.run_each("INSERT INTO held VALUES (?, ?)", ROWS)
    assert list(held.rows("SELECT * FROM held ORDER BY number")) == ROWS
    assert held.row("SELECT * FROM held WHERE number < 0") is None
