"""What a window without a release means, and what the estimate of a span with such windows is worth."""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.estimation.estimate import Estimate, Status, lower_bound
from sfm_stream.wire.records import RollupRecord


@dataclass(frozen=True, slots=True)
class Absence:
    """What it means that a decided window has no release of a key.

    empty_in: the epoch in which it means that the window has no event of the key (`presence_is_public`). In every other
    epoch the key may have been withheld, or not been declared yet. None: there is no such epoch, or the reader does not
    know the configuration.
    """

    empty_in: int | None = None

    def accounted(self, epoch: int, released: int, decided: int) -> int:
        """How many windows of a span (or milliseconds of them) are in the union, or known to be empty."""
        return max(released, decided) if epoch == self.empty_in else released


def rollup_estimate(record: RollupRecord, absence: Absence) -> Estimate:
    """The estimate of a roll-up for its whole span: a lower bound if windows are missing that may hold something.

    The estimate in the record is that of its releases. The record does not say whether windows are missing.
    """
    released = Estimate(
        record.value,
        record.standard_error,
        record.low,
        record.high,
        Status(record.status),
        record.confidence,
        unclamped=record.value,
    )
    whole = absence.accounted(record.epoch, record.released, record.decided) >= record.windows
    return released if whole else lower_bound(released)
