"""A roll-up that is disturbed at random, and what must come out of it all the same."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from support.rollup_runs import Run, place_of

from sfm_stream.wire.codec import decode_rollup, encode

WHAT = ["read", "read", "step", "drain", "checkpoint", "restart", "lose", "expire"]


def disturb(run: Run, data: st.DataObject, most_read: int, expire_ms: Callable[[], int]) -> None:
    """Up to 25 things that can happen to it, and a restart. expire_ms: draws until when its spans expire."""
    for _ in range(data.draw(st.integers(0, 25))):
        what = data.draw(st.sampled_from(WHAT))
        if what == "read":
            run.read(data.draw(st.integers(1, most_read)))
        elif what == "step" and (step := run.rollup.step()) is not None:
            run.take(step)
        elif what == "drain":
            run.drain()
        elif what == "checkpoint":
            run.checkpoint()
        elif what == "lose":
            run.rollup.step()
            run.restart()
        elif what == "restart":
            run.restart()
        elif what == "expire":
            run.rollup.expire(expire_ms())
    run.restart()


def require_same_records(run: Run, whole: Run, expire_ms: int) -> None:
    """Two runs over one log, both at its end, published the same: equal bytes for each place and revision."""
    complete = [{p for p, payload in each.newest.items() if decode_rollup(payload).complete} for each in (run, whole)]
    assert complete[0] == complete[1]
    for place, payload in whole.newest.items():
        assert run.newest[place] == payload
    revisions = [
        {(place_of(r), r.revision): encode(r) for r in map(decode_rollup, each.history)} for each in (run, whole)
    ]
    assert all(revisions[0][same] == revisions[1][same] for same in revisions[0].keys() & revisions[1].keys())
    # An expiry in between may have published more, for spans that end later than the last one: provisional only.
    for place in run.newest.keys() - whole.newest.keys():
        end_ms = place[3]
        assert isinstance(end_ms, int)
        assert end_ms > expire_ms
