"""One row of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sfm_stream.estimation.estimate import Estimate
from sfm_stream.types import KeyPart, Window


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """The number of distinct items under one key in one span.

    estimate: of the whole span; a lower bound where windows without a release may hold something. epsilon: the most
    that an item under this key can lose over the releases in the row (basic composition): of their bits, of their noisy
    counts, and of the selection of keys. origin: "raw" where the row is one release of its span, flipped from raw state
    once; "merged" where it is made of several, and has the noise of each. releases: the name of a released span -> how
    many of its releases are in the row, the coarsest first. windows: how many releases it would take with none missing.
    complete: nothing more can come. missing_ms: how much of the span may hold something and is not in the row; missing:
    where, in order of time, None where the published record does not say. epoch: of several the last one.

    keys: of a row for the union of several keys (Question.joined) those that have a release in it, in the order of
    their canonical bytes; key is () then. An item under all of them can lose epsilon.
    """

    key: tuple[KeyPart, ...]
    grain: str
    window: Window
    estimate: Estimate
    epsilon: float
    origin: str
    releases: Mapping[str, int]
    windows: int
    complete: bool
    missing_ms: int
    missing: tuple[Window, ...] | None
    epoch: int
    keys: tuple[tuple[KeyPart, ...], ...] = ()

    @property
    def released(self) -> int:
        """How many releases the row is made of."""
        return sum(self.releases.values())
