"""A rule of the house: no two modules import each other, directly or through others, not even for types only.

The layers of test_house_rules.py order the packages; this orders the modules inside them, too.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import pytest
from test_house_rules import MODULES, imports
from test_trusted_base import file_of

FACES = {"__init__.py", "wire/__init__.py"}
"""Packages whose names are loaded when they are first used: they name modules for type checkers and import none."""


def circle(modules: dict[str, str]) -> list[str]:
    """Modules that import each other in a loop, the first one twice; empty where there is none."""
    graph = {}
    for path, source in modules.items():
        if path not in FACES:
            targets = {file_of(name, modules) for _, name in imports(source, path) if name.startswith("sfm_stream.")}
            graph[path] = {target for target in targets if target and target != path and target not in FACES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other():
    assert circle(MODULES) == []


@pytest.mark.parametrize(
    ("path", "planted"),
    [
        ("sketch/shape.py", "from sfm_stream.sketch.sfm import SfmSketch"),
        ("sketch/hashing.py", "def f():\n    from sfm_stream.sketch import raw"),
        ("pipeline/in_hand.py", "if TYPE_CHECKING:\n    from sfm_stream.pipeline.outbox import OutboxCopy"),
    ],
)
def test_a_planted_circle_is_found(path, planted):
    assert path in circle(MODULES | {path: f"{MODULES[path]}\n\n{planted}\n"})
