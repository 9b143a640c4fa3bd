"""Links of a page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """A link of a page. is_current: it leads to where one is."""

    words: str
    address: str
    is_current: bool = False
