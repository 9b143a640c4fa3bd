"""What must agree before sketches or tallies are combined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sfm_stream.errors import IncompatibleError
from sfm_stream.sketch.shape import SketchShape


class Combinable(Protocol):
    """A public value that can be combined with others of its kind: an SfmSketch, a Tally or a TallySum; or its kind."""

    @property
    def shape(self) -> SketchShape: ...
    @property
    def flip_threshold(self) -> int: ...
    @property
    def hash(self) -> str: ...


@dataclass(frozen=True, slots=True)
class SketchKind:
    """What sketches and tallies have in common that can be added: all of a Combinable, without any bits."""

    shape: SketchShape
    flip_threshold: int
    hash: str

    @classmethod
    def of(cls, other: Combinable) -> SketchKind:
        return cls(other.shape, other.flip_threshold, other.hash)


def require_same(what: str, first: Combinable, other: Combinable, *, same_flip_threshold: bool) -> None:
    """Raise IncompatibleError naming the first property in which the two differ: shape, hash, then the threshold.

    same_flip_threshold: whether the flip thresholds have to agree, too.
    """
    pairs = [("shape", str(first.shape), str(other.shape)), ("hash", first.hash, other.hash)]
    if same_flip_threshold:
        pairs.append(("flip probability k", str(first.flip_threshold), str(other.flip_threshold)))
    for name, mine, theirs in pairs:
        if mine != theirs:
            raise IncompatibleError(f"{what}: {name} differs, {mine} against {theirs}")
