"""Rows of an answer, and the same as a table of pandas, polars or Arrow, which is imported where it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from sfm_stream.client.columns import RowColumns, RowColumnType, values_of
from sfm_stream.client.source import AnswerTerms, JsonObject
from sfm_stream.errors import UsageError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class AnswerTable(Sequence[JsonObject]):
    """Rows of an answer, each the object that the API gives (docs/serve.md).

    unanswered: a line for each key that has none. columns: names of the columns of its tables, with the type of each.
    """

    def __init__(
        self, terms: AnswerTerms, columns: RowColumns, rows: Sequence[JsonObject], unanswered: Sequence[str] = ()
    ) -> None:
        self._terms, self._columns, self._rows = terms, columns, tuple(rows)
        self.unanswered = tuple(unanswered)
        self.columns: dict[str, RowColumnType] = {name: kind for name, (kind, _) in columns.items()}

    @overload
    def __getitem__(self, place: int) -> JsonObject: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[JsonObject]: ...
    def __getitem__(self, place: int | slice) -> JsonObject | Sequence[JsonObject]:
        return self._rows[place]

    def __len__(self) -> int:
        return len(self._rows)

    def to_arrow(self) -> pyarrow.Table:
        """A table of Arrow. Raises UsageError where pyarrow is not installed."""
        try:
            import pyarrow
        except ImportError:
            raise _not_installed("pyarrow") from None
        types: dict[RowColumnType, Any] = {
            "text": pyarrow.string(),
            "texts": pyarrow.list_(pyarrow.string()),
            "time": pyarrow.timestamp("ms", tz=self._terms.zone),
            "number": pyarrow.float64(),
            "count": pyarrow.int64(),
            "flag": pyarrow.bool_(),
        }
        schema = pyarrow.schema([(name, types[kind]) for name, kind in self.columns.items()])
        return pyarrow.table(values_of(self._columns, self._rows), schema=schema)

    def to_polars(self) -> polars.DataFrame:
        """A data frame of polars. Raises UsageError where polars is not installed."""
        try:
            import polars
        except ImportError:
            raise _not_installed("polars") from None
        types: dict[RowColumnType, Any] = {
            "text": polars.String(),
            "texts": polars.List(polars.String()),
            "time": polars.Datetime("ms", "UTC"),
            "number": polars.Float64(),
            "count": polars.Int64(),
            "flag": polars.Boolean(),
        }
        values = values_of(self._columns, self._rows)
        series = []
        for name, kind in self.columns.items():
            column = polars.Series(name, values[name], dtype=polars.Int64() if kind == "time" else types[kind])
            if kind == "time":
                column = column.cast(types[kind]).dt.convert_time_zone(self._terms.zone)
            series.append(column)
        return polars.DataFrame(series)

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame of pandas. Raises UsageError where pandas is not installed."""
        try:
            import pandas
        except ImportError:
            raise _not_installed("pandas") from None
        types: dict[RowColumnType, Any] = {
            "text": "string",
            "texts": "object",
            "number": "float64",
            "count": "Int64",
            "flag": "boolean",
        }
        found: dict[str, Any] = {}
        for name, values in values_of(self._columns, self._rows).items():
            kind = self.columns[name]
            if kind == "time":
                times = pandas.Series(pandas.array(values, dtype="Int64"))
                moments = pandas.to_datetime(times, unit="ms", utc=True).dt.as_unit("ms")
                found[name] = moments.dt.tz_convert(self._terms.zone)
            else:
                found[name] = pandas.Series(values, dtype=types[kind])
        return pandas.DataFrame(found)


def _not_installed(name: str) -> UsageError:
    return UsageError(f"a table of {name} needs {name}, which is not installed: pip install {name}")
