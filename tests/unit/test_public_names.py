"""What `import sfm_stream` offers, and what importing it does not load."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import sfm_stream
from sfm_stream import errors, library


def loaded_by(statement: str) -> set[str]:
    """All modules that a fresh interpreter has loaded after this statement."""
    program = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_every_public_name_is_there():
    assert sfm_stream.__all__ == library.__all__
    assert len(set(library.__all__)) == len(library.__all__)
    for name in sfm_stream.__all__:
        assert getattr(sfm_stream, name) is getattr(library, name)
    assert set(sfm_stream.__all__) <= set(dir(sfm_stream))


def test_every_error_that_a_user_may_catch_is_public():
    classes = {name for name, _ in inspect.getmembers(errors, inspect.isclass)}
    assert classes <= set(sfm_stream.__all__)


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(AttributeError, match=r"module 'sfm_stream' has no attribute 'flipp'"):
        sfm_stream.flipp  # noqa: B018
    with pytest.raises(ImportError):
        from sfm_stream import GRID  # noqa: F401


@pytest.mark.parametrize("statement", ["import sfm_stream", "import sfm_stream.errors", "from sfm_stream import clock"])
def test_the_package_itself_costs_nothing_to_import(statement):
    loaded = loaded_by(statement)
    assert not loaded & {"numpy", "msgpack", "kafka", "pydantic", "rich", "click", "msgspec", "xxhash"}
    assert "sfm_stream.library" not in loaded


def test_the_library_loads_no_codec_no_client_and_no_configuration():
    loaded = loaded_by("from sfm_stream import flip")
    assert "numpy" in loaded, "the check looks at nothing"
    assert not loaded & {"msgpack", "kafka", "pydantic", "rich", "click", "msgspec", "sfm_stream.wire.codec"}
