"""One step in hand: what a pipeline has given out stays the same until it is committed.

    state   step(), one is due      step(), none is due   committed(that step)   committed(another)   free
    FREE    GIVEN, the new one      FREE, None            StateError             StateError           True
    GIVEN   GIVEN, the same one     GIVEN, the same one   FREE                   GIVEN, StateError    False

A commit that failed may have reached the log all the same, so it is tried again with the same bytes. A release that
was drawn anew instead could be published twice, with different noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sfm_stream.errors import StateError
from sfm_stream.types import Step

_Effect = TypeVar("_Effect")


@dataclass(frozen=True, slots=True)
class Prepared(Generic[_Effect]):
    """A step, and what is true once it is committed."""

    step: Step
    effect: _Effect


class StepInHand(Generic[_Effect]):
    """The step of one pipeline that is given out and not committed yet, or none."""

    def __init__(self) -> None:
        self._given: Prepared[_Effect] | None = None

    @property
    def free(self) -> bool:
        """Whether no step is given out."""
        return self._given is None

    def step(self, prepare: Callable[[], Prepared[_Effect] | None]) -> Step | None:
        """The step in hand; where there is none, the one that prepare() gives, which is called then only.

        None where nothing is due. Where prepare() raises, no step is in hand.
        """
        if self._given is None:
            self._given = prepare()
        return None if self._given is None else self._given.step

    def committed(self, step: Step) -> _Effect:
        """What is true now that this step is committed. Raises StateError where it is not the one in hand."""
        if self._given is None or step is not self._given.step:
            raise StateError("committed() was called with a step that is not due")
        effect, self._given = self._given.effect, None
        return effect
