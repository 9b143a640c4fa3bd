"""Secrets of a configuration: the one place that reads the environment, and files that hold a password."""

from __future__ import annotations

import os
from pathlib import Path

from sfm_stream.errors import ConfigError


def password(folder: Path, file: Path | None, variable: str | None) -> str | None:
    """The password in a file (its last line break left out) or in an environment variable; None where none is named.

    Raises ConfigError, which never shows the password.
    """
    if file is not None and variable is not None:
        raise ConfigError("kafka.password_file, kafka.password_env: only one of them")
    if file is not None:
        try:
            secret = (folder / file).read_text("utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"kafka.password_file: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
        if not secret:
            raise ConfigError("kafka.password_file: the file is empty")
        return secret
    if variable is not None:
        secret = os.environ.get(variable, "")
        if not secret:
            raise ConfigError(f"kafka.password_env: the environment variable {variable} is not set")
        return secret
    return None
