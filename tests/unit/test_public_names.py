"""What `import sfm_stream` offers, what importing it does not load, and that docs import nothing else."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import typed_usage.answers
import typed_usage.methods
import typed_usage.top_level
import typed_usage.wire

import sfm_stream
from sfm_stream import answers, errors, methods, wire
from sfm_stream import public as offered
from sfm_stream.wire import presto, public

ROOT = Path(__file__).resolve().parents[2]
PUBLIC: dict[str, ModuleType] = {module.__name__: module for module in (sfm_stream, answers, methods, wire, presto)}
"""What users may import from; each says what it offers in `__all__`. CHANGELOG speaks of a change to any of it."""
USAGE = [typed_usage.top_level, typed_usage.answers, typed_usage.methods, typed_usage.wire]


def loaded_by(statement: str) -> set[str]:
    """All modules that a fresh interpreter has loaded after this statement."""
    program = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(("package", "home"), [(sfm_stream, offered), (wire, public)])
def test_every_public_name_is_there(package, home):
    assert package.__all__ == home.__all__
    assert len(set(package.__all__)) == len(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is getattr(home, name)
    assert set(package.__all__) <= set(dir(package))


def test_every_error_that_a_user_may_catch_is_public():
    classes = {name for name, _ in inspect.getmembers(errors, inspect.isclass)}
    assert classes <= set(sfm_stream.__all__)


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(AttributeError, match=r"module 'sfm_stream' has no attribute 'flipp'"):
        sfm_stream.flipp  # noqa: B018 -- it is refused
    with pytest.raises(ImportError):
        from sfm_stream import GRID  # noqa: F401 -- it is refused


@pytest.mark.parametrize(
    "statement", ["import sfm_stream, sfm_stream.wire", "import sfm_stream.errors", "from sfm_stream import clock"]
)
def test_the_package_itself_costs_nothing_to_import(statement):
    loaded = loaded_by(statement)
    assert not loaded & {"numpy", "msgpack", "kafka", "pydantic", "rich", "click", "msgspec", "xxhash"}
    assert "sfm_stream.public" not in loaded


def test_the_library_loads_no_codec_no_client_and_no_configuration():
    loaded = loaded_by("from sfm_stream import flip")
    assert "numpy" in loaded, "the check looks at nothing"
    assert not loaded & {"msgpack", "kafka", "pydantic", "rich", "click", "msgspec", "sfm_stream.wire.codec"}


# Documentation: what pages import


def deep_imports(source: str) -> list[str]:
    """What a program imports of this package that is not public."""
    problems = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            problems += [alias.name for alias in node.names if alias.name.split(".")[0] == "sfm_stream"]
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sfm_stream":
            offered = PUBLIC.get(node.module or "")
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if name not in PUBLIC and (offered is None or alias.name not in offered.__all__):
                    problems.append(name)
    return [name for name in problems if name not in PUBLIC]


INSIDE = {"extending.md": "its code becomes a part of the package, as the page says"}
"""Pages that import other modules, and why."""


def python_blocks() -> list[tuple[str, str]]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [(p.name, code) for p in pages for code in re.findall(r"```python\n(.*?)```", p.read_text("utf-8"), re.S)]


def test_pages_import_public_names_only():
    blocks = python_blocks()
    assert {"README.md", "methods.md", "presto.md"} <= {page for page, _ in blocks}
    problems = {f"{page}: {name}" for page, code in blocks for name in deep_imports(code)}
    assert {problem.split(":")[0] for problem in problems} == INSIDE.keys(), problems


def test_pages_speak_of_public_names_only():
    """`sfm_stream.wire.presto`, `sfm_stream.wire.decode` in running text."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    spoken = {name for page in pages for name in re.findall(r"`(sfm_stream(?:\.\w+)*)", page.read_text("utf-8"))}
    offered = {*PUBLIC, *(f"{name}.{each}" for name, module in PUBLIC.items() for each in module.__all__)}
    assert spoken
    assert spoken <= offered


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("from sfm_stream.privacy.flip import flip", "sfm_stream.privacy.flip.flip"),
        ("from sfm_stream.wire.codec import decode", "sfm_stream.wire.codec.decode"),
        ("from sfm_stream.wire import codec", "sfm_stream.wire.codec"),
        ("from sfm_stream import clock", "sfm_stream.clock"),
        ("import sfm_stream.wire.codec as c", "sfm_stream.wire.codec"),
        ("def f():\n    from sfm_stream.sketch import raw", "sfm_stream.sketch.raw"),
    ],
)
def test_a_deep_import_is_caught(program, problem):
    assert deep_imports(program) == [problem]


def test_public_imports_are_left_alone():
    program = "import sfm_stream\nfrom sfm_stream import flip\nfrom sfm_stream.wire import decode, presto\nimport numpy"
    assert deep_imports(program) == []


# Types: tests/typed_usage is checked by mypy and is whole


def used_names(usage: ModuleType) -> set[str]:
    """Public names that a module of tests/typed_usage imports and then uses, each with the name of its module."""
    nodes = list(ast.walk(ast.parse(inspect.getsource(usage))))
    named = {node.id for node in nodes if isinstance(node, ast.Name)}
    imported = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module in PUBLIC]
    used = {f"{node.module}.{alias.name}" for node in imported for alias in node.names if alias.name in named}
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    return used | {f"{presto.__name__}.{node.attr}" for node in attributes if ast.unparse(node.value) == "presto"}


def test_the_typed_usage_uses_every_public_name():
    offered = {f"{name}.{each}" for name, module in PUBLIC.items() for each in module.__all__}
    assert set().union(*map(used_names, USAGE)) == offered | {presto.__name__}


@pytest.mark.parametrize("usage", USAGE, ids=lambda usage: usage.__name__)
def test_the_typed_usage_runs(usage):
    functions = [each for _, each in inspect.getmembers(usage, inspect.isfunction) if each.__module__ == usage.__name__]
    assert functions
    for function in functions:
        if not inspect.signature(function).parameters:
            function()


def test_the_typed_usage_has_the_example_of_the_readme():
    (code,) = [code for page, code in python_blocks() if page == "README.md"]
    body = [line.strip() for line in code.splitlines()[1:] if line.strip()]  # but for the import
    lines = [line.strip() for line in inspect.getsource(typed_usage.top_level.notebook).splitlines() if line.strip()]
    start = lines.index(body[0])
    assert lines[start : start + len(body)] == body
