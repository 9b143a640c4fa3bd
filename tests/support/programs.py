"""Programs that some tests need and Python does not bring: promtool, chromium, helm."""

from __future__ import annotations

import os
import shutil

import pytest


def program(name: str) -> str:
    """The path of a program. Without it the test is skipped; where CI is set it fails, as .ci/programs brings them."""
    found = shutil.which(name)
    if found is not None:
        return found
    if os.environ.get("CI"):
        pytest.fail(f"{name} is not installed, and CI tests with it: .ci/programs")
    pytest.skip(f"{name} is not installed")
