"""Tables of rows in files: CSV, or Parquet where pyarrow is installed. A file gets its name once it is whole."""

from __future__ import annotations

import base64
import contextlib
import csv
import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, TypeAlias

import numpy as np

from sfm_stream.errors import UsageError
from sfm_stream.readable import instant

ColumnType: TypeAlias = Literal["text", "int32", "int64", "float64", "bool", "time", "bytes"]
"""What a column holds. A time is given in milliseconds since 1970 UTC."""
TableRow: TypeAlias = dict[str, str | int | float | bool | bytes | None]
"""Column to value, None for no value."""

GROUP_BYTES, GROUP_ROWS = 8 << 20, 1 << 14
"""A row group is written when it has so many bytes or so many rows; no more than one is held in memory, twice over."""


_NUMBERS: dict[ColumnType, type[np.generic]] = {
    "int32": np.int32,
    "int64": np.int64,
    "time": np.int64,
    "float64": np.float64,
}


class Table(Protocol):
    """A table that is being written, in order, to a sink of bytes that stays open."""

    def add(self, row: TableRow) -> None: ...
    def close(self) -> None:
        """Write what is still held. The sink stays open."""
        ...


class CsvTable:
    """Comma-separated UTF-8 with a header line; lines end with a line feed, and a missing value is an empty field.

    Times are ISO 8601 in UTC, bytes are base64, booleans are true or false, and a number has the fewest digits that
    read back as the same number.
    """

    def __init__(self, sink: BinaryIO, columns: Mapping[str, ColumnType]) -> None:
        self._columns = columns
        self._writer = csv.writer(_Utf8(sink), lineterminator="\n")
        self._writer.writerow(columns)

    def add(self, row: TableRow) -> None:
        self._writer.writerow([_text(row[name], column_type) for name, column_type in self._columns.items()])

    def close(self) -> None:
        """Nothing is held."""


class ParquetTable:
    """Parquet that old engines read too: timestamps as INT64 milliseconds, zstd, row groups of bounded size.

    Raises UsageError naming the remedy where pyarrow is not installed.
    """

    def __init__(self, sink: BinaryIO, columns: Mapping[str, ColumnType]) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise UsageError(
                "writing Parquet needs pyarrow, which is not installed: pip install 'sfm-stream[parquet]', or give "
                "--out a name that ends in .csv"
            ) from None
        types = {"text": "string", "int32": "int32", "int64": "int64", "float64": "float64", "bool": "bool"}
        named = {column_type: pyarrow.type_for_alias(alias) for column_type, alias in types.items()}
        named |= {"time": pyarrow.timestamp("ms", tz="UTC"), "bytes": pyarrow.binary()}
        self._pyarrow, self._columns = pyarrow, columns
        self._schema = pyarrow.schema([(name, named[column_type]) for name, column_type in columns.items()])
        # Statistics or a dictionary of sketches would hold copies of them and help nobody.
        plain = [name for name, column_type in columns.items() if column_type != "bytes"]
        self._writer = pyarrow.parquet.ParquetWriter(
            sink, self._schema, compression="zstd", use_dictionary=plain, write_statistics=plain
        )
        self._held: dict[str, list[Any]] = {name: [] for name in columns}
        self._rows = self._bytes = 0

    def add(self, row: TableRow) -> None:
        for name, values in self._held.items():
            value = row[name]
            values.append(value)
            self._bytes += len(value) if isinstance(value, bytes | str) else 8
        self._rows += 1
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        if self._rows:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        arrays = [self._taken(field.name, field.type) for field in self._schema]
        self._writer.write_table(self._pyarrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows = self._bytes = 0

    def _taken(self, name: str, arrow_type: Any) -> Any:
        """An array of what is held of a column, which is held no more.

        It is made of buffers: pyarrow.array() imports pandas where that is installed, which takes 60 MB.
        """
        values, self._held[name] = self._held[name], []
        buffers = [None if None not in values else _bits([value is not None for value in values])]
        column_type = self._columns[name]
        if column_type in _NUMBERS:
            buffers.append(np.array([0 if value is None else value for value in values], _NUMBERS[column_type]))
        elif column_type == "bool":
            buffers.append(_bits(values))
        else:
            parts = [value.encode() if isinstance(value, str) else value or b"" for value in values]
            buffers.append(np.cumsum([0, *map(len, parts)], dtype=np.int32))
            buffers.append(b"".join(parts))
        held = [None if each is None else self._pyarrow.py_buffer(each) for each in buffers]
        return self._pyarrow.Array.from_buffers(arrow_type, len(values), held)


def _bits(values: list[Any]) -> Any:
    """A bit for each value, whether it is true."""
    return np.packbits(np.array(values, np.bool_), bitorder="little")


class _Utf8:
    """Takes text, passes on bytes."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink

    def write(self, text: str) -> int:
        return self._sink.write(text.encode())


def _text(value: str | int | float | bool | bytes | None, column_type: ColumnType) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    return instant(int(value)) if column_type == "time" else str(value)


@contextmanager
def new_file(path: Path, replace: bool) -> Iterator[BinaryIO]:
    """A file to write to. When the block ends it is on disk and gets its name; where the block fails nothing is left.

    Until then its name is .NAME.part, in the same folder: Hive and Presto ignore such files in the folder of a table. A
    part that a killed process left is overwritten. Raises UsageError where the name is taken and replace is False, or
    another process is writing the file; OSError.
    """
    _require_free(path, replace)
    part = path.with_name(f".{path.name}.part")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666), "wb") as sink:
        _lock(sink, part)
        try:
            sink.truncate()
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
            _require_free(path, replace)
            os.replace(part, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part)
            raise


def _lock(sink: BinaryIO, part: Path) -> None:
    """Lock the part against other processes. Raises UsageError where another one holds it, or has just renamed it."""
    try:
        fcntl.flock(sink, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_there = os.path.samestat(os.fstat(sink.fileno()), os.stat(part))
    except (BlockingIOError, FileNotFoundError):
        is_there = False
    if not is_there:
        raise UsageError(f"{part}: another export is writing it")


def _require_free(path: Path, replace: bool) -> None:
    if not replace and os.path.lexists(path):
        raise UsageError(f"{path} is there already: give another name, or --force to replace it")
