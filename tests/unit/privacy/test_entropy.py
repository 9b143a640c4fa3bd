"""Randomness that fails in the middle of a close: nothing is published, nothing is lost, nothing is drawn twice."""

import ssl

import pytest
from reference.naive_windows import Row
from support.counting_runs import (
    PRESENCE,
    SELECTED,
    Failing,
    Log,
    Same,
    Tape,
    columns_of,
    contents,
    declared,
    drain,
    first_state,
    plan_of,
    run,
    table_of,
)

from sfm_stream.errors import EntropyError
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.privacy.coins import SYSTEM_COINS
from sfm_stream.wire.keys import encode_key

MODES = {"declared": declared("a", "b", "c"), "selected": SELECTED, "presence_is_public": PRESENCE}
ROWS = [
    Row(i, time, time, key, i) for i, (time, key) in enumerate((t, k) for t in (3, 5, 13, 25) for k in ("b", "a", "c"))
]


def counter_with(coins, plan):
    keys = table_of(plan)
    counter = WindowCounter(plan, 0, first_state(plan), keys, coins)
    counter.add(columns_of(ROWS, keys))
    return counter


def raw(counter):
    """Every bit of every open window."""
    windows = {start: counter.base.store.get(start) for start in counter.base.store.starts()}
    return {
        (start, key_id): window.cells_by_key(window.shape).bits(key_id).tobytes()
        for start, window in windows.items()
        for key_id in window.key_ids().tolist()
    }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("requests", range(8))
def test_coins_that_fail_in_a_close_publish_nothing(mode, requests):
    """Wherever the coins run out, no step exists and no state moves; once they are mended, all of it is published."""
    plan = plan_of(MODES[mode])
    coins = Failing(Same(0), requests)
    counter = counter_with(coins, plan)
    before, held = counter.state, raw(counter)
    needed = {"declared": 6, "selected": 12, "presence_is_public": 6}[mode]
    if requests >= needed:
        assert counter.step() is not None
        return
    for _ in range(3):
        with pytest.raises(EntropyError):
            counter.step()
    assert (counter.state, raw(counter)) == (before, held)
    assert counter.base.store.starts() == [0, 10, 20]
    assert set(counter.keys) == {"a", "b", "c"}
    coins.left = 1000
    log = Log()
    counter.finish()
    drain(counter, log)
    whole, _, _ = run(plan, [ROWS], Same(0))
    assert contents(log.records) == contents(whole.records)
    assert len(contents(log.records)) == 9


def test_pieces_that_are_committed_stay_committed():
    """The coins fail in the third piece: the first two are out, and are not drawn again."""
    coins = Failing(Same(0), 2)
    counter, log = counter_with(coins, plan_of(PRESENCE, max_transaction_bytes=1)), Log()
    with pytest.raises(EntropyError):
        drain(counter, log)
    assert [record.key for record in log.releases] == [encode_key("a"), encode_key("b")]
    coins.left = 1000
    counter.finish()
    drain(counter, log)
    assert len(contents(log.records)) == len(log.releases) == 9, "every key once"


def test_a_failure_of_the_real_generator_publishes_nothing(monkeypatch):
    """From the second request on it comes back short, as a broken system would."""
    plan, calls = plan_of(PRESENCE), []

    def short(count, real=ssl.RAND_bytes):
        calls.append(count)
        return real(count) if len(calls) < 3 else b""

    counter = counter_with(SYSTEM_COINS, plan)
    with monkeypatch.context() as patch:
        patch.setattr(ssl, "RAND_bytes", short)
        with pytest.raises(EntropyError, match="nothing was released"):
            counter.step()
    assert len(calls) >= 3
    step = counter.step()
    assert len(contents(step.publish)) == 6


def test_the_coins_that_failed_are_not_used_again():
    """What was drawn before the failure is thrown away: a release is made of coins that are drawn after it."""
    plan = plan_of(PRESENCE)
    tape = Tape(3)
    coins = Failing(tape, 4)
    counter = counter_with(coins, plan)
    with pytest.raises(EntropyError):
        counter.step()
    used = tape.position
    assert used > 0
    coins.left = 10**6
    fresh = counter_with(Tape(3, used), plan)
    assert counter.step() == fresh.step()
