"""A rule of the house: one name for one thing. No two classes of the package have the same name."""

from __future__ import annotations

import ast
from collections import defaultdict

import pytest
from test_house_rules import MODULES, tree


def shared_names(modules: dict[str, str]) -> dict[str, list[str]]:
    """Name of a class to the modules that define one of this name, where there are several."""
    homes = defaultdict(list)
    for path, source in modules.items():
        for node in tree(source).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(path)
    return {name: paths for name, paths in homes.items() if len(paths) > 1}


def test_no_two_classes_have_the_same_name():
    assert shared_names(MODULES) == {}


@pytest.mark.parametrize(("path", "name"), [("sketch/shape.py", "Step"), ("clock.py", "SketchShape")])
def test_a_second_class_of_a_name_is_found(path, name):
    planted = MODULES | {path: f"{MODULES[path]}\n\nclass {name}: ...\n"}
    assert path in shared_names(planted)[name]
