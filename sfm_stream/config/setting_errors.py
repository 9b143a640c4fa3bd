"""What the validator of settings found, one line for each: the setting, what is wrong, and what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from sfm_stream.config.tables import Settings

_UNION_ARMS = {"str", "int", "strict-str", "strict-int"}
"""Parts of a setting's path that pydantic adds for the types that a value may have."""


def explained(error: ValidationError, whole: type[BaseModel] = Settings) -> Iterator[str]:
    """A line for each problem, in the order of the validator. whole: what the file was validated as."""
    for problem in error.errors():
        yield _line(dict(problem), whole)


def _line(problem: dict[str, Any], whole: type[BaseModel]) -> str:
    path = [part for part in problem["loc"] if not (isinstance(part, str) and ("[" in part or part in _UNION_ARMS))]
    name = ".".join(str(part) for part in path)
    if problem["type"] == "extra_forbidden":
        known = _settings_at(path[:-1], whole)
        close = difflib.get_close_matches(str(path[-1]), known, 1)
        return f"{name}: unknown setting" + (
            f'; did you mean "{close[0]}"?' if close else f"; known are {', '.join(known)}"
        )
    message = _wrong_kind(problem, name, path, whole) or str(problem["msg"]).removeprefix("Value error, ")
    return f"{name}: {message[0].lower()}{message[1:]}"


def _wrong_kind(problem: dict[str, Any], name: str, path: list[Any], whole: type[BaseModel]) -> str | None:
    """What should stand in place of a value that is no table or no list; None for another problem."""
    found = "one table" if isinstance(problem["input"], dict) else type(problem["input"]).__name__
    if problem["type"] == "model_type":
        head = f"[[{name.rpartition('.')[0]}]]" if isinstance(path[-1], int) else f"[{name}]"
        return f"expected a table {head}, got {found}"
    if problem["type"] not in ("list_type", "tuple_type"):
        return None
    wanted = "a list in brackets" if _table_at(path, whole) is None else f"a table [[{name}]] for each"
    return f"expected {wanted}, got {found}"


def _settings_at(path: list[Any], whole: type[BaseModel]) -> list[str]:
    """Names of the settings of the table at this path."""
    return list((_table_at(path, whole) or whole).model_fields)


def _table_at(path: list[Any], whole: type[BaseModel]) -> type[BaseModel] | None:
    """The table at this path, or of which there may be several there; None where something else is."""
    model: type[BaseModel] | None = whole
    for part in path:
        if model is None:
            return None
        if not isinstance(part, int):  # which of several tables
            field = model.model_fields.get(str(part))
            model = None if field is None else _table_of(field.annotation)
    return model


def _table_of(annotation: Any) -> type[BaseModel] | None:
    """The table that a setting is, may be, or has several of."""
    kinds = (annotation, *get_args(annotation))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
