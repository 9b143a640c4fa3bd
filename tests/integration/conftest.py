"""What several files of these tests start from. A file that needs another `app` has one of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.exported_tables import make_pipeline


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a pipeline that has run. Not to be changed."""
    return make_pipeline(tmp_path_factory.mktemp("made"))


@pytest.fixture
def app(made: Path, tmp_path: Path) -> Path:
    """A configuration that has run, in a folder of this test's own."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "app.toml"
