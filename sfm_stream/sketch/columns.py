"""Columns of items as notebooks have them, with one rule for missing values.

Missing values are left out, as COUNT(DISTINCT) leaves them out: None, NaN, NaT, the nulls of pandas, polars and Arrow,
masked entries. Every other value is an item or an error. Tables and mappings are refused: iterating over them gives the
names of their columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import ItemError

_ONE_COLUMN = "expected one column of items"
_NEVER_MISSING = {str, int, bytes}
_MISSING_TYPES = {"NAType", "NaTType", "MaskedConstant"}
"""Types of the missing values of pandas and numpy. They are known by name, so that no table library is loaded here."""
_UNEQUAL_TO_ITSELF = (float, np.generic, Decimal)
"""Types with a NaN or NaT, which does not equal itself."""


def present(items: Iterable[object] | NDArray[np.generic]) -> list[object] | NDArray[np.generic]:
    """The items of a column without its missing values, in order. Raises ItemError for what is no column.

    Columns are iterables of values (lists, sets, generators), one-dimensional arrays of numpy, and the columns of
    pandas, polars and Arrow.
    """
    if isinstance(items, str | bytes | bytearray | memoryview):
        raise ItemError(f"{_ONE_COLUMN}, got one text or bytes value; wrap it in a list")
    if isinstance(items, Mapping):
        raise ItemError(f"{_ONE_COLUMN}, got a mapping; name what to count: its keys() or its values()")
    if _is_table(items):
        raise ItemError(
            f"{_ONE_COLUMN}, got a table ({type(items).__name__}); choose a column of it, as in table['user']"
        )
    if isinstance(items, np.ma.MaskedArray):
        return present(items.compressed())
    array = _as_array(items)
    if array is not None:
        return _of_array(array)
    values = _as_list(items)
    if set(map(type, values)) <= _NEVER_MISSING:
        return values
    return [value for value in values if not is_missing(value)]


def is_missing(value: object) -> bool:
    """Whether a value is a missing one."""
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return True
    return isinstance(value, _UNEQUAL_TO_ITSELF) and bool(value != value)


def _is_table(items: object) -> bool:
    """Whether this is a table. Data frames have the interchange protocol; structured arrays of numpy have fields."""
    kind = type(items)
    if isinstance(items, np.ndarray):
        return items.ndim != 1 or items.dtype.names is not None
    return hasattr(kind, "__dataframe__") or (hasattr(kind, "columns") and not hasattr(kind, "dtype"))


def _as_array(items: object) -> NDArray[Any] | None:
    """The array of numpy that a column is or holds; None where there is none."""
    if isinstance(items, np.ndarray):
        return items
    if isinstance(getattr(items, "dtype", None), np.dtype):
        return np.asarray(items)
    return None


def _of_array(array: NDArray[Any]) -> list[object] | NDArray[np.generic]:
    if array.dtype.kind == "f":
        missing = np.isnan(array)
        return array[~missing] if missing.any() else array
    if array.dtype.kind == "O":
        return [value for value in array.tolist() if not is_missing(value)]
    return array


def _as_list(items: Any) -> list[Any]:
    """The values as Python objects. Columns of Arrow, polars and of pandas' extension types have a method for that."""
    for name in ("to_pylist", "to_list"):
        if hasattr(type(items), name):
            return list(getattr(items, name)())
    try:
        return list(items)
    except TypeError:
        pass
    raise ItemError(f"{_ONE_COLUMN}, got one {type(items).__name__}; wrap it in a list")
