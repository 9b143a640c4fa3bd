"""Results that are kept: the same ones, the last that were used, and no more than has room."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

from sfm_stream.estimation import shared_items
from sfm_stream.estimation.estimate import channel_of
from sfm_stream.estimation.kept_results import KeptResults, array_bytes
from sfm_stream.estimation.union import overlap_hypotheses as hypotheses
from sfm_stream.estimation.union.count_noise import count_noise
from sfm_stream.sketch.sfm import GRID

CHANNEL = channel_of(GRID // 8)
MB = 1 << 20


@dataclass(frozen=True)
class Pair:
    first: np.ndarray
    second: np.ndarray
    name: str = "neither array nor dataclass"


def test_bytes_are_those_of_all_arrays():
    assert array_bytes(np.zeros(10)) == 80
    assert array_bytes(Pair(np.zeros(10), np.zeros((2, 3), np.int8))) == 86
    assert array_bytes("text") == 0


@pytest.mark.parametrize(
    ("most", "most_bytes", "kept"), [(2, 1000, [3, 4]), (9, 56, [3, 4]), (9, 55, [4]), (9, 1, [4])]
)
def test_the_last_ones_are_kept_that_fit(most, most_bytes, kept):
    made = []

    def function(size):
        made.append(size)
        return np.full(8 * size, size, np.int8)

    results = KeptResults(function, most, most_bytes)
    for size in (1, 2, 3, 4):
        assert results(size).tolist() == [size] * 8 * size
    assert results.kept_bytes == sum(8 * size for size in kept)
    made.clear()
    for size in kept:
        assert results(size) is results(size)
    assert made == []


def test_the_one_that_was_used_last_stays():
    made = []
    results = KeptResults(made.append, 2, 0)
    for size in (1, 2, 1, 3, 1, 2):
        results(size)
    assert made == [1, 2, 3, 2]


def test_what_fails_is_not_kept():
    def function(size):
        raise ValueError(size)

    results = KeptResults(function, 2, 100)
    for _ in range(2):
        with pytest.raises(ValueError, match="7"):
            results(7)
    assert results.kept_bytes == 0


def test_keys_with_different_numbers_of_releases_hold_no_more():
    """Each takes some 16 MB of hypotheses, and of many releases more for the noise of their counts."""
    made = [hypotheses.overlap_hypotheses(CHANNEL, releases) for releases in range(500, 504)]
    assert sum(map(array_bytes, made)) > 48 * MB
    assert hypotheses.overlap_hypotheses.kept_bytes <= 32 * MB
    assert count_noise.kept_bytes <= 16 * MB


@pytest.mark.parametrize("releases", [1, 2, 9, 70])
def test_hypotheses_that_are_made_piece_by_piece_are_the_same(monkeypatch, releases):
    noise = count_noise(CHANNEL, releases)
    states = np.concatenate(([0], noise.set_windows))
    activities = states[1:]
    whole = hypotheses._one_more_item(states, activities)
    for numbers in (1, 3 * releases):
        monkeypatch.setattr(hypotheses, "_AT_ONCE_NUMBERS", numbers)
        assert hypotheses._one_more_item(states, activities).tobytes() == whole.tobytes()


def peak_of(make):
    tracemalloc.start()
    make()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_hypotheses_of_many_releases_are_made_in_little_memory():
    """A row for each state and each number of windows would take 60 MB."""
    states = np.array([*range(17), 40_000])
    assert peak_of(lambda: hypotheses._one_more_item(states, np.array([1, 40_000]))) < 12 * MB


def test_the_signal_of_many_releases_is_that_of_a_matrix_of_all_counts(monkeypatch):
    made = []
    for few in (0, 400):
        monkeypatch.setattr(shared_items, "_FEW_RELEASES", few)
        made.append(shared_items._signal.__wrapped__(CHANNEL, 300))
    (x, doubt), (direct, doubt_of_direct) = made
    np.testing.assert_allclose(x, direct, rtol=1e-6, atol=1e-9)
    assert doubt == pytest.approx(doubt_of_direct)


def test_the_signal_of_many_releases_takes_no_such_matrix():
    releases = 1500
    count_noise(CHANNEL, releases)
    assert peak_of(lambda: shared_items._signal.__wrapped__(CHANNEL, releases)) < 8 * releases**2 / 4
