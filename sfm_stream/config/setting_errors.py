"""What the validator of settings found, one line for each: the setting, what is wrong, and what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError

from sfm_stream.config.tables import Settings

_UNION_ARMS = {"str", "int", "strict-str", "strict-int"}
"""Parts of a setting's path that pydantic adds for the types that a value may have."""


def explained(error: ValidationError) -> Iterator[str]:
    """A line for each problem, in the order of the validator."""
    for problem in error.errors():
        yield _line(dict(problem))


def _line(problem: dict[str, Any]) -> str:
    path = [part for part in problem["loc"] if not (isinstance(part, str) and ("[" in part or part in _UNION_ARMS))]
    name = ".".join(str(part) for part in path)
    if problem["type"] == "extra_forbidden":
        known = _settings_at(path[:-1])
        close = difflib.get_close_matches(str(path[-1]), known, 1)
        return f"{name}: unknown setting" + (
            f'; did you mean "{close[0]}"?' if close else f"; known are {', '.join(known)}"
        )
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{name}: {message[0].lower()}{message[1:]}"


def _settings_at(path: list[Any]) -> list[str]:
    """Names of the settings of the table at this path."""
    model: type[BaseModel] = Settings
    for part in path:
        field = model.model_fields.get(str(part))
        inner = field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            break
        model = inner
    return list(model.model_fields)
