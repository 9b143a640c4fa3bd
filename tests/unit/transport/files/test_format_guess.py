"""Files that are no JSON lines are named for what they are; JSON lines of any content are not."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sqlite3
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfm_stream.transport.files.format_guess import HEAD_BYTES, guessed_format

ROWS = [{"page": f"/{n}", "user": f"u{n}", "at": 1_700_000_000_000 + n} for n in range(50)]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)


def as_csv(delimiter):
    out = io.StringIO()
    writer = csv.DictWriter(out, list(ROWS[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(ROWS)
    return out.getvalue().encode()


def as_zip():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("views.jsonl", LINES)
    return out.getvalue()


def as_parquet():
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), out)
    return out.getvalue()


def as_arrow():
    out = io.BytesIO()
    table = pa.Table.from_pylist(ROWS)
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def as_sqlite():
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE views (page)")
    return database.serialize()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (as_csv(","), "CSV"),
        (as_csv(";"), "CSV"),
        (as_csv("\t"), "CSV"),
        (json.dumps(ROWS).encode(), "a JSON array"),
        (b"\n  " + json.dumps(ROWS, indent=1).encode(), "a JSON array"),
        (b"\xef\xbb\xbf" + json.dumps(ROWS).encode(), "a JSON array"),
        (json.dumps(ROWS[0], indent=2).encode(), "JSON over several lines"),
        (LINES.replace(b"\n", b"\r"), "carriage returns"),
        (LINES.decode().encode("utf-16"), "UTF-16"),
        (LINES.decode().encode("utf-16-le"), "UTF-16"),
        (LINES.decode().encode("utf-16-be"), "UTF-16"),
        (as_zip(), "a zip archive"),
        (as_parquet(), "a Parquet file"),
        (as_arrow(), "an Arrow file"),
        (as_sqlite(), "a SQLite database"),
        (gzip.compress(LINES), "gzip in gzip"),
        (b"<html><body>", "XML"),
        (b"\x01\x02\x00\x03\n\x00", "binary"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_formats_are_named_with_a_remedy(content, name):
    found = guessed_format(content)
    assert found is not None
    assert name in found[0]
    assert found[1]
    assert "/1" not in "".join(found), "nothing of the content is shown"


@given(
    st.lists(
        st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
            st.recursive(
                st.one_of(st.none(), st.integers(), st.floats(), st.text(st.characters(exclude_categories=["Cs"]))),
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab{"), inner, max_size=3),
                max_leaves=8,
            ),
            max_size=5,
        ),
        max_size=5,
    ),
    st.booleans(),
    st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
)
def test_json_lines_of_any_content_are_not_taken_for_something_else(rows, ascii_only, end):
    whole = b"".join(json.dumps(row, ensure_ascii=ascii_only).encode() + end for row in rows)
    if b"{" in whole.splitlines()[0][1:] if whole else False:
        return  # braces inside of texts cannot be told from objects that go on; only a hint hangs on it
    assert guessed_format(whole) is None


def test_an_empty_head_and_a_cut_line_say_nothing():
    for head in (b"", b" \n\n", LINES[:10], LINES, b"\xef\xbb\xbf" + LINES, b'{"a": "' + b"x" * HEAD_BYTES):
        assert guessed_format(head) is None
