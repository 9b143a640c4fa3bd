"""The most privacy that one item can lose under a configuration. Above the configured limit nothing starts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import add

from sfm_stream.errors import BudgetError
from sfm_stream.privacy.epsilon import decimals, places_for, plain
from sfm_stream.privacy.released_span import ReleasedSpan, windows_per_day


@dataclass(frozen=True, slots=True)
class Budget:
    """The price of one release of each span and how many of them one item can be in.

    spans: what is released. epsilon_selection, delta_selection: the price of selecting keys in one window, 0 in other
    modes. longest_day_ms: the longest day in use. day_step_ms: every day begins on a multiple of it. Under each of its
    keys an item loses, for each span and each window of it in which it is active, the epsilon of that span and
    epsilon_selection, with delta_selection (basic composition). A coarser span is no exception: its releases are of
    the same items as those of the spans inside it.
    """

    spans: tuple[ReleasedSpan, ...]
    epsilon_selection: Decimal
    delta_selection: Decimal
    longest_day_ms: int
    day_step_ms: int

    def epsilon_per_window(self, span: ReleasedSpan) -> Decimal:
        """The loss of an item in one window of this span, under one key."""
        with decimals(self._places):
            return span.epsilon + self.epsilon_selection

    def windows_per_day(self, span: ReleasedSpan) -> int:
        """The most windows of this span that the longest day in use touches."""
        return windows_per_day(span.size_ms, self.longest_day_ms, self.day_step_ms)

    @property
    def epsilon_per_day(self) -> Decimal:
        """The loss of an item that is active in every window of every span in the longest day, under one key."""
        with decimals(self._places):
            return reduce(
                add, (self.windows_per_day(span) * (span.epsilon + self.epsilon_selection) for span in self.spans)
            )

    @property
    def delta_per_day(self) -> Decimal:
        """The delta that goes with epsilon_per_day."""
        with decimals(self._places):
            return reduce(add, (self.windows_per_day(span) * self.delta_selection for span in self.spans))

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
            f"{_windows(budget)} of a day can lose epsilon {plain(budget.epsilon_per_day)} under one key "
            f"({_prices(budget)}). Use longer windows, a smaller epsilon, or raise the limit"
        )


def _windows(budget: Budget) -> str:
    if len(budget.spans) == 1:
        return f"{budget.windows_per_day(budget.spans[0])} windows"
    return "windows (" + ", ".join(f"{budget.windows_per_day(span)} of {span.name}" for span in budget.spans) + ")"


def _prices(budget: Budget) -> str:
    prices = [(plain(budget.epsilon_per_window(span)), span.name) for span in budget.spans]
    return ", ".join(f"{price} a {name if len(prices) > 1 else 'window'}" for price, name in prices)
