"""What a reader must know about a pipeline beside its published records, which do not hold it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from sfm_stream.config.config import Config
from sfm_stream.pipeline.rollup.coverage import Absence
from sfm_stream.privacy.epsilon import epsilon_of

UNKNOWN_ABSENCE = Absence()
"""Nothing is known of a window without a release: the key may have been withheld there."""


@dataclass(frozen=True, slots=True)
class ReleaseTerms:
    """The terms under which a pipeline releases.

    absence: what a window without a release of a key says. epsilon_selection: what one release costs an item on top of
    the epsilon of its bits, where keys are selected by noisy counts; else 0. zone: of its days.
    """

    pipeline: str
    absence: Absence = UNKNOWN_ABSENCE
    epsilon_selection: float = 0.0
    zone: str = "UTC"

    def epsilon_of_release(self, flip_threshold: int, count_epsilon: Decimal | None) -> float:
        """What one release costs an item: its bits, its noisy count where it has one, and the selection of its key."""
        of_count = 0.0 if count_epsilon is None else float(count_epsilon)
        return _epsilon_of_bits(flip_threshold) + of_count + self.epsilon_selection


@cache
def _epsilon_of_bits(flip_threshold: int) -> float:
    """As epsilon_of, which takes long: a pipeline has few thresholds, and answers many rows."""
    return epsilon_of(flip_threshold)


def release_terms(config: Config) -> ReleaseTerms:
    """The terms of the pipeline of a configuration."""
    selection = float(config.budget.epsilon_selection)
    return ReleaseTerms(config.pipeline.id, config.absence, selection, config.calendar.zone)
