"""A TOML file as text and as a table, or what is wrong with it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfm_stream.errors import ConfigError

_SQLITE = b"SQLite format 3\0"


def toml_text(path: Path) -> str:
    """The text of a file. Raises ConfigError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        is_output = error.object.startswith(_SQLITE)
        found = "an output file: give the configuration that it was written by" if is_output else "not UTF-8 text"
        raise ConfigError(f"{path}: {found}") from None


def toml_table(text: str, name: str, number: Callable[[str], Any] = float) -> dict[str, Any]:
    """The table. name: of the file. number: makes those with a point or an exponent. Raises ConfigError."""
    try:
        return tomllib.loads(text, parse_float=number)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name}: not TOML: {error}") from None
    except (ValueError, ArithmeticError, RecursionError):
        raise ConfigError(f"{name}: a number in it, or the depth of its brackets, is out of all bounds") from None
