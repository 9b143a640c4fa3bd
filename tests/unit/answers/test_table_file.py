"""Files of tables: values as they are written, row groups of bounded size, and a name only for what is whole."""

from __future__ import annotations

import csv
import fcntl
import importlib.util
import io
import os
import subprocess
import sys

import pyarrow.parquet as parquet
import pytest

from sfm_stream.answers import table_file
from sfm_stream.answers.table_file import CsvTable, ParquetTable, new_file
from sfm_stream.errors import UsageError

COLUMNS = {
    "name": "text",
    "count": "int32",
    "big": "int64",
    "share": "float64",
    "ok": "bool",
    "at": "time",
    "raw": "bytes",
}
ROWS = [
    {"name": 'a,"b"\n', "count": 2**31 - 1, "big": 2**63 - 1, "share": 0.1, "ok": True, "at": 1, "raw": b"\x00\xff"},
    {"name": "é", "count": 0, "big": -1, "share": 1e-19, "ok": False, "at": 1_767_225_600_000, "raw": b""},
    dict.fromkeys(COLUMNS),
]


def written(kind, rows):
    sink = io.BytesIO()
    table = kind(sink, COLUMNS)
    for row in rows:
        table.add(row)
    table.close()
    assert not sink.closed
    return sink


def test_csv_is_text_that_reads_back_exactly():
    text = written(CsvTable, ROWS).getvalue().decode()
    assert "\r" not in text
    assert list(csv.reader(io.StringIO(text, newline=""))) == [
        list(COLUMNS),
        ['a,"b"\n', "2147483647", "9223372036854775807", "0.1", "true", "1970-01-01T00:00:00.001Z", "AP8="],
        ["é", "0", "-1", "1e-19", "false", "2026-01-01T00:00:00Z", ""],
        [""] * 7,
    ]


def test_parquet_has_the_types_that_old_engines_read():
    found = parquet.read_table(written(ParquetTable, ROWS))
    assert [(field.name, str(field.type)) for field in found.schema] == [
        ("name", "string"),
        ("count", "int32"),
        ("big", "int64"),
        ("share", "double"),
        ("ok", "bool"),
        ("at", "timestamp[ms, tz=UTC]"),
        ("raw", "binary"),
    ]
    at = found["at"].cast("int64").to_pylist()
    assert [{**row, "at": ms} for row, ms in zip(found.to_pylist(), at, strict=True)] == ROWS
    file = parquet.ParquetFile(written(ParquetTable, ROWS))
    kinds = {name: file.schema.column(number).physical_type for number, name in enumerate(COLUMNS)}
    assert (kinds["at"], kinds["raw"]) == ("INT64", "BYTE_ARRAY")
    group = file.metadata.row_group(0)
    assert {group.column(number).compression for number in range(7)} == {"ZSTD"}
    assert group.column(6).statistics is None, "the smallest and the largest sketch would be copies of sketches"
    assert not {"RLE_DICTIONARY", "PLAIN_DICTIONARY"} & set(group.column(6).encodings)


@pytest.mark.parametrize("among", [0, 20])
def test_numbers_read_back_from_parquet_as_they_are(among):
    """Zero below zero, infinite ones and none among them."""
    shares = [-0.0, 0.0, float("inf"), -float("inf"), 5e-324, float("nan"), *[None] * among]
    rows = [{**dict.fromkeys(COLUMNS), "share": share, "big": -(2**63), "count": -(2**31)} for share in shares]
    found = parquet.read_table(written(ParquetTable, rows)).to_pydict()
    assert repr(found["share"]) == repr(shares)
    assert (set(found["big"]), set(found["count"])) == ({-(2**63)}, {-(2**31)})


@pytest.mark.parametrize(("limit", "value"), [("GROUP_ROWS", 10), ("GROUP_BYTES", 10 * (1000 + 1 + 5 * 8))])
def test_row_groups_are_bounded_in_rows_and_in_bytes(monkeypatch, limit, value):
    monkeypatch.setattr(table_file, limit, value)
    row = ROWS[0] | {"name": "n", "raw": bytes(1000)}
    metadata = parquet.ParquetFile(written(ParquetTable, [row] * 25)).metadata
    assert [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)] == [10, 10, 5]


def test_a_table_without_rows_is_a_table():
    assert written(CsvTable, []).getvalue().decode() == ",".join(COLUMNS) + "\n"
    assert parquet.read_table(written(ParquetTable, [])).num_rows == 0


def test_a_file_has_its_name_only_once_it_is_whole(tmp_path):
    path = tmp_path / "a.csv"
    with new_file(path, replace=False) as sink:
        sink.write(b"half")
        sink.flush()
        assert os.listdir(tmp_path) == [".a.csv.part"], "the dot hides it from an engine that reads the folder"
    assert os.listdir(tmp_path) == ["a.csv"]
    assert path.read_bytes() == b"half"
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask(), "what is published is not secret"


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt(), SystemExit(143)])
@pytest.mark.parametrize("there", [None, b"before"])
def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path, error, there):
    path = tmp_path / "a.csv"
    if there is not None:
        path.write_bytes(there)
    with pytest.raises(type(error)), new_file(path, replace=True) as sink:  # noqa: PT012 -- the block is what fails
        sink.write(b"half")
        raise error
    assert os.listdir(tmp_path) == ([] if there is None else ["a.csv"])
    assert there is None or path.read_bytes() == there


def test_a_name_that_is_taken_is_refused_before_and_after_writing(tmp_path):
    path = tmp_path / "a.csv"
    there = pytest.raises(UsageError, match="is there already")
    with there, new_file(path, replace=False) as sink:
        sink.write(b"mine")
        path.write_bytes(b"came in between")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"came in between", ["a.csv"])
    with pytest.raises(UsageError, match="--force"), new_file(path, replace=False):
        pytest.fail("it was opened")
    with new_file(path, replace=True) as sink:
        sink.write(b"mine")
    assert path.read_bytes() == b"mine"


def test_a_link_that_leads_nowhere_is_a_name_that_is_taken(tmp_path):
    (tmp_path / "a.csv").symlink_to("nowhere")
    with pytest.raises(UsageError, match="is there already"), new_file(tmp_path / "a.csv", replace=False):
        pytest.fail("it was opened")


def test_what_a_killed_export_left_is_written_over(tmp_path):
    (tmp_path / ".a.csv.part").write_bytes(b"longer than what comes")
    with new_file(tmp_path / "a.csv", replace=False) as sink:
        sink.write(b"new")
    assert os.listdir(tmp_path) == ["a.csv"]
    assert (tmp_path / "a.csv").read_bytes() == b"new"


def test_two_exports_of_one_file_do_not_mix(tmp_path):
    path = tmp_path / "a.csv"
    with new_file(path, replace=True) as first:
        first.write(b"first")
        with pytest.raises(UsageError, match="another export"), new_file(path, replace=True):
            pytest.fail("it was opened")
    assert path.read_bytes() == b"first"


def test_a_file_that_was_renamed_before_it_was_locked_is_left_alone(tmp_path, monkeypatch):
    """The other export ends between our opening and our locking: what we hold is its finished file."""
    path = tmp_path / "a.csv"

    def lock_late(sink, how):
        os.write(sink.fileno(), b"finished")
        os.replace(tmp_path / ".a.csv.part", path)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    with pytest.raises(UsageError, match="another export"), new_file(path, replace=True):
        pytest.fail("it was opened")
    assert path.read_bytes() == b"finished"


PROGRAM = """
import io, sys
from sfm_stream.answers.table_file import ParquetTable
table = ParquetTable(io.BytesIO(), {"name": "text", "count": "int32", "ok": "bool", "raw": "bytes"})
table.add({"name": "a", "count": 1, "ok": None, "raw": b"x"})
table.close()
print("pandas" in sys.modules)
"""


def test_a_table_is_written_without_pandas():
    """It is there, and would take 60 MB of memory."""
    assert importlib.util.find_spec("pandas")
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
