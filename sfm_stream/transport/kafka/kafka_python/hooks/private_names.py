"""What the hooks rely on in the inside of kafka-python: each hook says it in a table, which a test looks after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

TESTED_WITH = "3.0.12"
"""The version of kafka-python whose inside the hooks were written against."""
PrivateNames: TypeAlias = Mapping[str, Mapping[str, str]]
"""Class as "module:Class", to a name that kafka-python does not promise, to what has to be looked at if it is another.

The name of an attribute, or of a method with its parameters as they are declared: `name(self, x=None)`. It may end in
`, ...)` where further parameters do not matter.
"""
