"""Wrong pipelines, each caught by the check of neighbouring inputs that the real one passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from support.counting_runs import (
    PRESENCE,
    Same,
    plan_of,
    releases_of,
)
from support.neighbour_runs import (
    DECLARED,
    FILE,
    FIRST_OF_ITS_KEY,
    HUGE,
    ORDER,
    PASSES,
    PASSING,
    REAL,
    STAMPED,
    Event,
    System,
    Z,
    assert_alike,
    blanked,
    cut,
    neighbours,
    removed,
)

from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.pipeline.counting.releases import ReleaseDraw
from sfm_stream.pipeline.in_hand import StepInHand
from sfm_stream.privacy.key_rules import DeclaredKeys
from sfm_stream.types import NO_TIME, Reason
from sfm_stream.wire.codec import decode, encode
from sfm_stream.wire.keys import MARKER_KEY


def event_clock(columns):
    """A watermark from the event times of what is counted."""
    usable = columns.reasons == Reason.OK
    return replace(columns, arrival_ms=np.where(usable, columns.event_ms, NO_TIME))


def no_clock_of_bad_items(columns):
    """Records without a usable item do not move the clock."""
    bad = (columns.reasons >= Reason.ITEM_MISSING) & (columns.reasons <= Reason.ITEM_RANGE)
    return replace(columns, arrival_ms=np.where(bad, NO_TIME, columns.arrival_ms))


class SecondDraw(WindowCounter):
    """Draws again whenever it is asked again, as after a commit that failed."""

    def step(self):
        self._in_hand = StepInHand()
        return super().step()


class ChangedDraw(WindowCounter):
    draw = ReleaseDraw

    def __init__(self, plan, partition, state, keys, coins):
        super().__init__(plan, partition, state, keys, coins)
        for span in self.spans:
            span.draw = self.draw(plan, span.span, partition, keys, coins)


class FirstArrivalOrder(ChangedDraw):
    """Keys in the order of their ids: of their first usable record."""

    class draw(ReleaseDraw):
        def _candidates(self, window, content):
            if isinstance(self._plan.keys, DeclaredKeys):
                return super()._candidates(window, content)
            return sorted(super()._candidates(window, content), key=lambda pair: pair[1])

        def decisions(self, window, content, after):
            self._listed = (-1, [])
            return super().decisions(window, content, None)


class PresentOnly(ChangedDraw):
    """Saves the empty releases of declared keys."""

    class draw(ReleaseDraw):
        def _candidates(self, window, content):
            present = set(content.key_ids().tolist()) if content is not None else set()
            return [(key, key_id) for key, key_id in super()._candidates(window, content) if key_id in present]


class CoinsForLitKeysOnly(ChangedDraw):
    """Saves the coins of declared keys without an event."""

    class draw(ReleaseDraw):
        def _release(self, window, key, bits):
            coins, self._coins = self._coins, self._coins if bits.any() else Same(255)
            try:
                return super()._release(window, key, bits)
            finally:
                self._coins = coins


class OneMarkerForAllThatIsDue(WindowCounter):
    """A close marker over every window that one record made due."""

    def _next_releases(self):
        prepared = super()._next_releases()
        if prepared is None:
            return None
        markers = [record for record in prepared.step.publish if record.key == MARKER_KEY]
        wide = replace(decode(markers[-1].value), start_ms=decode(markers[0].value).start_ms)
        publish = (*releases_of(prepared.step.publish), replace(markers[-1], value=encode(wide)))
        return replace(prepared, step=replace(prepared.step, publish=publish))


LONE = ("b", "w", 0, 10)
LONELY = [Event(3, "a", "x"), Event(4, "b", "w"), Event(15, "a", "x")]
IN_TIME = [
    *(Event(5, "a", "x", 5), Event(6, "a", "y", 6)),
    Event(14, "a", "z", 7),  # an event of the near future
    *(Event(9, "b", "w", 8), Event(15, "a", "w", 15), Event(41, "b", "y", 41)),
]

NEXT = ("a", "z", 1, 10)
CASES = {
    "clock of usable rows": (System(between=event_clock), PRESENCE, 0, FILE, blanked, Z, "releases"),
    "clock of events": (System(between=event_clock), DECLARED, 20, IN_TIME, removed, NEXT, "releases"),
    "no clock of bad items": (System(between=no_clock_of_bad_items), DECLARED, 0, FILE, blanked, Z, "releases"),
    "second draw, blanked": (System(SecondDraw), DECLARED, 0, FILE, blanked, Z, "draws"),
    "second draw, removed": (System(SecondDraw), PRESENCE, 20, STAMPED, removed, Z, "draws"),
    "order of first arrival": (System(FirstArrivalOrder), PRESENCE, 0, ORDER, blanked, FIRST_OF_ITS_KEY, "messages"),
    "present keys only": (System(PresentOnly), DECLARED, 0, LONELY, blanked, LONE, "messages"),
    "coins for lit keys only": (System(CoinsForLitKeysOnly), DECLARED, 0, LONELY, blanked, LONE, "cells|releases"),
    "a marker for all": (System(OneMarkerForAllThatIsDue), DECLARED, 20, PASSES, removed, PASSING, "messages"),
}


@pytest.mark.parametrize(
    ("system", "keys", "skew", "events", "neighbour", "target", "problem"), CASES.values(), ids=CASES
)
def test_a_wrong_pipeline_is_caught(system, keys, skew, events, neighbour, target, problem):
    plan, batches = plan_of(keys, skew=skew), cut(events, range(len(events)) if events is PASSES else [])
    other = neighbour(batches, target)
    assert_alike(REAL, plan, batches, other)
    with pytest.raises(AssertionError, match=f"^({problem}): "):
        assert_alike(system, plan, batches, other)


@pytest.mark.parametrize("stamped", [False, True])
def test_the_generated_neighbours_catch_the_clock_mutant_too(stamped):
    """The search itself is strong enough: it finds the item that makes others late."""
    keys, change = DECLARED, removed if stamped else blanked

    @settings(max_examples=1200, database=None, derandomize=True, report_multiple_bugs=False)
    @given(neighbours(stamped))
    def search(case):
        arguments, batches, target = case
        plan = plan_of(keys, **{**arguments, "max_transaction_bytes": HUGE})
        assert_alike(System(between=event_clock), plan, batches, change(batches, target))

    with pytest.raises(AssertionError):
        search()
