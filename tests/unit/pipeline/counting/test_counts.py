"""Releases with a noisy count: whose coins it takes, what it costs, and wrong draws that are caught."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from support.counting_cases import BUSY, KEYS, MODES
from support.counting_runs import (
    DELTA_SELECTION,
    EPSILON_SELECTION,
    PRESENCE,
    Log,
    Same,
    Tape,
    columns_of,
    contents,
    declared,
    drain,
    first_state,
    markers_of,
    plan_of,
    run,
    table_of,
)
from support.neighbour_runs import (
    DECLARED,
    FILE,
    REAL,
    STAMPED,
    Event,
    System,
    Z,
    assert_alike,
    blanked,
    cut,
    removed,
)

from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.pipeline.counting.releases import ReleaseDraw
from sfm_stream.pipeline.in_hand import StepInHand
from sfm_stream.privacy.discrete_laplace import DiscreteLaplace
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.privacy.flip import flip_bits, noisy_count
from sfm_stream.privacy.selection import select, selection_table
from sfm_stream.sketch.sfm import NoisyCount
from sfm_stream.wire.codec import decode, encode

BITS, COUNT = Decimal("0.75"), Decimal("0.25")
SHARE = Decimal("0.25")


def counted(keys=PRESENCE, **arguments):
    """A plan whose releases cost 1: 0.75 for their bits and 0.25 for their count."""
    return plan_of(keys, epsilon=1, count_share=SHARE, **arguments)


def raw_bits(cells, shape):
    flat = np.zeros(shape.cells, np.bool_)
    flat[sorted(cells)] = True
    return np.packbits(flat, bitorder="little")


# What is drawn, from which coins


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(4))
def test_each_release_takes_coins_for_selection_then_for_its_bits_then_for_its_count(mode, seed):
    assert_own_coins(WindowCounter, mode, seed)


def assert_own_coins(counter_class, mode, seed):
    """Each release is drawn again by hand, from its exact cells: nothing differs, and no coin is taken besides."""
    plan, tape, again = counted(MODES[mode]), Tape(seed), Tape(seed)
    keys, log = table_of(plan), Log()
    counter = counter_class(plan, 0, first_state(plan), keys, tape)
    counter.add(columns_of(BUSY, keys))
    counter.finish()
    drain(counter, log, tape)
    exact = contents(run(plan_of(declared(*KEYS, "z", since={"late": 40})), [BUSY], Same(255))[0].records)
    noise, threshold = DiscreteLaplace.of(COUNT), flip_threshold_of(BITS)
    table = selection_table(EPSILON_SELECTION, DELTA_SELECTION)
    releases = {(r.window.start_ms, r.key): r for r in map(decode, (record.value for record in log.releases))}
    drawn = 0
    for place in sorted(exact):
        cells = exact[place]
        if mode == "declared":
            if place not in releases:  # declared later, or not at all
                continue
        elif not cells:
            continue
        elif mode == "selected" and not select(len(cells), table, again):
            assert place not in releases
            continue
        bits = raw_bits(cells, plan.spans[0].shape)
        sketch = releases[place].sketch
        assert flip_bits(bits, threshold, again).tobytes() == sketch.bits
        assert noisy_count(bits, noise, again) == sketch.count.value
        drawn += 1
    assert drawn == len(releases) > 5
    assert tape.position == again.position, "coins were taken that no release shows"


def test_a_count_is_the_number_of_cells_plus_noise_and_is_not_cut_off():
    """Coins without noise give the exact number; with a tape, some counts of few items lie below 0."""
    log, _, _ = run(counted(declared(*KEYS)), [BUSY], Same(255))
    exact = contents(log.records)
    for record in log.releases:
        release = decode(record.value)
        assert release.sketch.count == NoisyCount(len(exact[release.window.start_ms, release.key]), COUNT)
    log, _, _ = run(counted(declared(*KEYS)), [BUSY], Tape(3))
    values = [decode(record.value).sketch.count.value for record in log.releases]
    assert min(values) < 0 < max(values)


def test_every_release_of_declared_keys_has_a_count_empty_or_not():
    log, _, _ = run(counted(declared("a", "unseen")), [BUSY], Tape(1))
    assert {decode(record.value).sketch.count is not None for record in log.releases} == {True}
    assert len({len(record.value) - len(record.key) for record in log.releases}) == 1, "lengths tell the counts"


def test_records_with_counts_name_their_span_and_others_are_as_they_were():
    for plan, name in ((counted(), "10ms"), (plan_of(), None)):
        log, _, _ = run(plan, [BUSY], Tape(1))
        assert {decode(record.value).span for record in log.records} == {name}
    assert [
        replace(marker, span=None, spans=()) for marker in markers_of(run(counted(), [BUSY], Tape(1))[0].records)
    ] == (markers_of(log.records))


def test_without_a_share_no_coin_more_is_taken_and_every_byte_is_the_paper_s():
    """The bits of a plan without a share are those of a flip at the whole epsilon, on the same tape."""
    one, other = Tape(7), Tape(7)
    log, _, _ = run(plan_of(count_share=0), [BUSY], one)
    exact = contents(run(plan_of(), [BUSY], Same(255))[0].records)
    for record in log.releases:
        release = decode(record.value)
        bits = raw_bits(exact[release.window.start_ms, release.key], release.sketch.shape)
        assert flip_bits(bits, flip_threshold_of(1), other).tobytes() == release.sketch.bits
        assert release.sketch.count is None
        assert record.value[3:12] == b"\xcf" + (1).to_bytes(8, "big"), "version 1"
    assert one.position == other.position


# Neighbours, and wrong pipelines (test_neighbours.py draws plans with and without counts)


class ChangedDraw(WindowCounter):
    draw = ReleaseDraw

    def __init__(self, plan, partition, state, keys, coins):
        super().__init__(plan, partition, state, keys, coins)
        for span in self.spans:
            span.draw = self.draw(plan, span.span, partition, keys, coins)


def with_count(record, change):
    """The record with another count."""
    release = decode(record.value)
    count = release.sketch.count
    sketch = replace(release.sketch, count=NoisyCount(change(count.value), count.epsilon))
    return replace(record, value=encode(replace(release, sketch=sketch)))


def ones(bits):
    """The number of set cells."""
    return int(np.bitwise_count(bits).sum())


class Clamped(ChangedDraw):
    """Counts are not below 0."""

    class draw(ReleaseDraw):
        def _release(self, window, key, bits):
            return with_count(super()._release(window, key, bits), lambda value: max(value, 0))


class OfItems(ChangedDraw):
    """A count that an item moves by two."""

    class draw(ReleaseDraw):
        def _release(self, window, key, bits):
            return with_count(super()._release(window, key, bits), lambda value: value + ones(bits))


class CountDrawnTwice(ChangedDraw):
    """The bits of a release are kept; its count is drawn again whenever it is asked for again."""

    class draw(ReleaseDraw):
        def _release(self, window, key, bits):
            self.kept = getattr(self, "kept", {})
            record = super()._release(window, key, bits)
            first = self.kept.setdefault((window, key), record)
            return with_count(first, lambda _: decode(record.value).sketch.count.value)

    def step(self):
        self._in_hand = StepInHand()
        return super().step()


class NoCountOfEmptyOnes(ChangedDraw):
    """Saves the count of releases without an item."""

    class draw(ReleaseDraw):
        def _release(self, window, key, bits):
            noise, self._noise = self._noise, self._noise if ones(bits) else None
            try:
                return super()._release(window, key, bits)
            finally:
                self._noise = noise


class SharedCoins(ChangedDraw):
    """The noise of the count is made of the coins of the bits."""

    class draw(ReleaseDraw):
        def _release(self, window, key, bits):
            before = self._coins.position
            record = super()._release(window, key, bits)
            after = self._coins.position
            self._coins.position = before
            count = noisy_count(bits, self._noise, self._coins)
            self._coins.position = after
            return with_count(record, lambda value: count)


class CountFirst(ChangedDraw):
    """The count is drawn before the bits."""

    class draw(ReleaseDraw):
        def _release(self, window, key, bits):
            count = noisy_count(bits, self._noise, self._coins)
            noise, self._noise = self._noise, DiscreteLaplace.of(COUNT)
            record = super()._release(window, key, bits)
            self._noise = noise
            return with_count(record, lambda _: count)


LONE = ("b", "w", 0, 10)
LONELY = [Event(3, "a", "x"), Event(4, "b", "w"), Event(15, "a", "x")]
MUTANTS = {
    "clamped": (Clamped, DECLARED, FILE, blanked, Z, "count"),
    "moved by two": (OfItems, DECLARED, FILE, blanked, Z, "count"),
    "drawn twice, blanked": (CountDrawnTwice, DECLARED, FILE, blanked, Z, "draws"),
    "drawn twice, removed": (CountDrawnTwice, PRESENCE, STAMPED, removed, Z, "draws"),
    "no count of empty ones": (NoCountOfEmptyOnes, DECLARED, LONELY, blanked, LONE, "messages"),
}


@pytest.mark.parametrize(("counter", "keys", "events", "neighbour", "target", "problem"), MUTANTS.values(), ids=MUTANTS)
def test_a_wrong_count_is_caught(counter, keys, events, neighbour, target, problem):
    plan, batches = counted(keys, skew=20 if events is STAMPED else 0), cut(events, [])
    other = neighbour(batches, target)
    for seed in range(8):
        assert_alike(REAL, plan, batches, other, seed)
    with pytest.raises(AssertionError, match=f"^({problem}): "):  # noqa: PT012 -- one of these tapes shows it
        for seed in range(8):
            assert_alike(System(counter), plan, batches, other, seed)


@pytest.mark.parametrize("counter", [SharedCoins, CountFirst])
def test_a_count_with_coins_of_the_bits_is_caught(counter):
    """Neighbours do not show it: on one tape they differ as they should. The exact coins of each release do."""
    with pytest.raises(AssertionError):
        assert_own_coins(counter, "declared", 1)
