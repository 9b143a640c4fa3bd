"""The files of a page that do not change: style sheet, scripts, icon. They are in the package, and read once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_TYPES = {
    "page.css": "text/css; charset=utf-8",
    "uplot.min.css": "text/css; charset=utf-8",
    "uplot.iife.min.js": "text/javascript; charset=utf-8",
    "zoom.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file as it is served. version: of its content, in the address of the page's links to it."""

    content: bytes
    media_type: str
    version: str


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Every static file by its name."""
    folder = files("sfm_stream.serve.pages") / "static"
    made = {}
    for name, media_type in _TYPES.items():
        content = (folder / name).read_bytes()
        made[name] = StaticFile(content, media_type, hashlib.sha256(content).hexdigest()[:12])
    return made
