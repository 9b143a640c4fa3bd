"""What the absence of a release says, and what an answer is worth whose span is not wholly in it."""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.estimation.estimate import Estimate, Status, lower_bound
from sfm_stream.wire.records import RollupRecord


@dataclass(frozen=True, slots=True)
class Absence:
    """How a reader takes a window that is decided and has no release of a key.

    empty_in: the epoch in which that is a window without any event of the key (`presence_is_public`). In every other
    one the key may have been withheld, or was not counted yet; None, for readers without the configuration: in all.
    """

    empty_in: int | None = None

    def accounted(self, epoch: int, released: int, decided: int) -> int:
        """Of the windows of a span, or of the milliseconds in them: how many are known to be in the union."""
        return max(released, decided) if epoch == self.empty_in else released


def rollup_estimate(record: RollupRecord, absence: Absence) -> Estimate:
    """The published estimate of a roll-up, for its whole span: a lower bound where windows are not accounted for.

    What is published is the estimate of the releases in it, which the record itself cannot tell from this one.
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
