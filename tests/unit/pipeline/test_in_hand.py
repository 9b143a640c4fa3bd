"""One step in hand: every row of its table, and every sequence of calls against a plain model."""

from itertools import product

import pytest

from sfm_stream.errors import EntropyError, StateError
from sfm_stream.pipeline.in_hand import Prepared, StepInHand
from sfm_stream.types import Step


def due(effect="done"):
    return Prepared(Step(), effect)


def never():
    raise AssertionError("a step was prepared while another one is in hand")


def given(effect="done"):
    """A hand that holds a step, and that step."""
    hand = StepInHand()
    step = hand.step(lambda: due(effect))
    return hand, step


def test_free_and_one_is_due():
    prepared, hand = due(), StepInHand()
    assert hand.free
    assert hand.step(lambda: prepared) is prepared.step
    assert not hand.free


def test_free_and_none_is_due():
    hand = StepInHand()
    assert hand.step(lambda: None) is None
    assert hand.free
    assert hand.step(due) is not None, "asked again, it looks again"


def test_given_and_asked_again():
    hand, step = given()
    assert hand.step(never) is step
    assert not hand.free


def test_given_and_committed():
    hand, step = given("effect")
    assert hand.committed(step) == "effect"
    assert hand.free
    following = hand.step(due)
    assert following is not None
    assert following is not step


def test_an_effect_may_be_none():
    hand, step = given(None)
    assert hand.committed(step) is None
    assert hand.free


def test_free_and_committed_is_an_error():
    hand = StepInHand()
    with pytest.raises(StateError, match="not due"):
        hand.committed(Step())
    assert hand.free


def test_committed_twice_is_an_error():
    hand, step = given()
    hand.committed(step)
    with pytest.raises(StateError, match="not due"):
        hand.committed(step)
    assert hand.free


def test_an_equal_step_is_not_the_one_in_hand():
    hand, step = given()
    other = Step()
    assert other == step
    with pytest.raises(StateError, match="not due"):
        hand.committed(other)
    assert hand.step(never) is step


def test_where_preparing_fails_none_is_in_hand():
    hand = StepInHand()

    def fails():
        raise EntropyError("no randomness; nothing was released")

    with pytest.raises(EntropyError):
        hand.step(fails)
    assert hand.free
    assert hand.step(due) is not None


CALLS = ["ask, due", "ask, none due", "commit the step", "commit another"]


@pytest.mark.parametrize("calls", list(product(CALLS, repeat=5)), ids="; ".join)
def test_every_sequence_of_five_calls(calls):
    hand, held, numbers = StepInHand(), None, iter(range(10))
    last = Step()
    for call in calls:
        if call.startswith("ask"):
            fresh = due(next(numbers)) if call == "ask, due" else None
            answer = hand.step(lambda prepared=fresh: prepared)
            held = held or fresh
            assert answer is (held.step if held else None)
            last = answer or last
        elif call == "commit the step" and held is not None:
            assert hand.committed(held.step) == held.effect
            held = None
        else:
            with pytest.raises(StateError):
                hand.committed(last if call == "commit the step" else Step())
        assert hand.free == (held is None)
