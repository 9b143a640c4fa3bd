"""Puts what a command measured into its place on a page."""

from __future__ import annotations

import re
from pathlib import Path


def between(text: str, name: str) -> str:
    """What stands between the two marks of this name, which are comments that a reader does not see."""
    found = re.search(_marks(name), text, re.S)
    if found is None:
        raise LookupError(f"no marks of {name}")
    return found[2]


def write_between(page: Path, name: str, section: str) -> None:
    """Replace what stands there."""
    text = page.read_text("utf-8")
    between(text, name)
    page.write_text(re.sub(_marks(name), lambda found: found[1] + section + found[3], text, flags=re.S), "utf-8")


def _marks(name: str) -> str:
    return rf"(<!-- {name}: [^\n]*-->\n)(.*?)(<!-- end of {name} -->)"
