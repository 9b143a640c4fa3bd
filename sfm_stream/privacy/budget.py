"""The most privacy that one item can lose under a configuration. Above the configured limit nothing starts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import add

from sfm_stream.errors import BudgetError
from sfm_stream.privacy.epsilon import decimals, places_for, plain
from sfm_stream.privacy.released_span import ReleasedSpan, only


@dataclass(frozen=True, slots=True)
class Budget:
    """The price of one release and how many of them one item can be in.

    spans: what is released. epsilon_selection, delta_selection: the price of selecting keys, 0 in other modes.
    longest_day_ms: the longest day in use. An item active in w windows of a day under m keys loses
    m * w * (epsilon + epsilon_selection) with delta m * w * delta_selection (basic composition).
    """

    spans: tuple[ReleasedSpan, ...]
    epsilon_selection: Decimal
    delta_selection: Decimal
    longest_day_ms: int

    @property
    def epsilon(self) -> Decimal:
        """Of one release, its bits and its count together."""
        return only(self.spans).epsilon

    @property
    def windows_per_day(self) -> int:
        """Windows in the longest day in use."""
        return self._releases_per_day(only(self.spans))

    @property
    def epsilon_per_window(self) -> Decimal:
        """The loss of an item in one window under one key."""
        with decimals(self._places):
            return self.epsilon + self.epsilon_selection

    @property
    def epsilon_per_day(self) -> Decimal:
        """The loss of an item that is active in every window of the longest day, under one key."""
        with decimals(self._places):
            return reduce(
                add, (self._releases_per_day(span) * (span.epsilon + self.epsilon_selection) for span in self.spans)
            )

    @property
    def delta_per_day(self) -> Decimal:
        """The delta that goes with epsilon_per_day."""
        with decimals(self._places):
            return reduce(add, (self._releases_per_day(span) * self.delta_selection for span in self.spans))

    def _releases_per_day(self, span: ReleasedSpan) -> int:
        """Windows of this span in the longest day in use."""
        return self.longest_day_ms // span.size_ms

    @property
    def _places(self) -> int:
        """Digits of precision in which every sum and product here is exact."""
        numbers = (*(span.epsilon for span in self.spans), self.epsilon_selection, self.delta_selection)
        return max(places_for(number) for number in numbers)


def require_within(budget: Budget, max_epsilon_per_item_day: Decimal) -> None:
    """Raise BudgetError, with both numbers, where the worst case of a day is above the limit."""
    if max_epsilon_per_item_day.is_nan() or budget.epsilon_per_day > max_epsilon_per_item_day:
        raise BudgetError(
            f"privacy.max_epsilon_per_item_day is {plain(max_epsilon_per_item_day)}, but an item in all "
            f"{budget.windows_per_day} windows of a day can lose epsilon {plain(budget.epsilon_per_day)} under one key "
            f"({plain(budget.epsilon_per_window)} a window). Use longer windows, a smaller epsilon, or raise the limit"
        )
