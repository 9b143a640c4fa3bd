"""The committed state of a partition: its bytes, as earlier versions wrote them too, and whether a run may go on."""

from dataclasses import replace

import msgspec
import pytest
from support.counting_cases import (
    MODES,
    at,
)
from support.counting_runs import (
    PRESENCE,
    SOURCE,
    Tape,
    declared,
    first_state,
    moved,
    plan_of,
    run,
    state_in,
)

from sfm_stream.errors import StateError
from sfm_stream.pipeline.counting import position as state_module
from sfm_stream.pipeline.counting.position import decode_state, encode_state, require_continuation
from sfm_stream.types import Commit, PartitionState, SpanProgress

# The committed state as bytes

EARLIER = b'[1,"0123","1","in.jsonl",900000,0,99,1800000,1700000,42,"",null]'.replace(b'"1"', b"1")
UNMARKED = PartitionState("0123", 1, "in.jsonl", 0, 99, (SpanProgress("15m", 1_800_000),), 1_700_000, 42)


def test_a_state_without_a_mark_is_as_it_was():
    assert encode_state(UNMARKED) == EARLIER
    assert decode_state(Commit(0, 42, EARLIER)) == UNMARKED


@pytest.mark.parametrize("cursor", [None, b"", b"\x00\xffkey"])
def test_a_state_with_a_mark_comes_back(cursor):
    state = replace(moved(UNMARKED, cursor=cursor), mark="ends:42:" + "0" * 32)
    assert decode_state(Commit(0, 42, encode_state(state))) == state


@pytest.mark.parametrize("tail", [b'"",null,"m","more"]', b'"",null,7]', b'""]', b'"",null,null]'])
def test_other_shapes_are_refused(tail):
    with pytest.raises(StateError, match="cannot be read"):
        decode_state(Commit(0, 42, EARLIER[: EARLIER.index(b'"",null')] + tail))


STATE = replace(moved(first_state(plan_of()), closed_through_ms=50, cursor=b"\x91\xa1a\xff"), clock_ms=61, offset=17)


@pytest.mark.parametrize(
    "state", [STATE, moved(STATE, cursor=None), replace(moved(STATE, cursor=b""), declared="ab", source="ü")]
)
def test_a_state_survives_its_bytes(state):
    encoded = encode_state(state)
    assert encoded.decode("ascii" if state.source == SOURCE else "utf-8")
    assert decode_state(Commit(0, state.offset, encoded)) == state


def damaged():
    good = msgspec.json.decode(encode_state(STATE))
    yield "empty", b""
    yield "not JSON", b"\xff\xfe"
    yield "not text", encode_state(STATE)[:-1] + b"\xff"
    yield "cut off", encode_state(STATE)[:-1]
    yield "something behind", encode_state(STATE) + b"x"
    yield "an object", b"{}"
    yield "a field too few", msgspec.json.encode(good[:-1])
    yield "a field too many", msgspec.json.encode([*good, 1])
    for place in range(len(good)):
        wrong = good[:]
        wrong[place] = [] if place else "1"
        yield f"field {place} of a wrong type", msgspec.json.encode(wrong)
    yield "a float for an integer", msgspec.json.encode([*good[:7], 50.5, *good[8:]])
    yield "text for an integer", msgspec.json.encode([*good[:7], "50", *good[8:]])


@pytest.mark.parametrize(("name", "metadata"), [pytest.param(*case, id=case[0]) for case in damaged()])
def test_a_state_that_cannot_be_read_stops(name, metadata):
    with pytest.raises(StateError, match="cannot be read"):
        decode_state(Commit(0, STATE.offset, metadata))


def test_a_state_of_another_version_stops():
    fields = msgspec.json.decode(encode_state(STATE))
    fields[0] += 2
    with pytest.raises(StateError, match=r"version 3, this release reads 1 and 2"):
        decode_state(Commit(0, STATE.offset, msgspec.json.encode(fields)))


def test_a_state_for_another_offset_stops():
    with pytest.raises(StateError, match=r"committed offset 18 differs from its state's 17"):
        decode_state(Commit(0, 18, encode_state(STATE)))


# Going on with a state


def closed(plan, through=50, cursor=None):
    digest = state_module.declared_digest(plan, through)
    return replace(moved(first_state(plan), closed_through_ms=through, cursor=cursor), declared=digest)


def test_the_same_plan_goes_on():
    for keys in MODES.values():
        plan = plan_of(keys)
        require_continuation(closed(plan), plan, SOURCE, 0)
        require_continuation(first_state(plan), replace(plan, keys=PRESENCE), SOURCE, 0)


@pytest.mark.parametrize(
    ("change", "source", "message"),
    [
        (
            {"fingerprint": "ffff"},
            SOURCE,
            r"fingerprint 0123456789abcdef then, ffff now.*raise pipeline.epoch.*00.050Z",
        ),
        ({"partitions": 2}, SOURCE, r"had 1 partitions and now has 2.*[Rr]aise pipeline.epoch.*00.050Z"),
        ({}, "other", r"the input is 'other', the state is of 'input'"),
        (
            {"windows": plan_of(start=10).windows},
            SOURCE,
            r"window.start is 1970-01-01T00:00:00.010Z, this epoch began at 1970-01-01T00:00:00Z",
        ),
    ],
    ids=["fingerprint", "partitions", "source", "start"],
)
def test_a_changed_plan_is_refused_with_the_remedy(change, source, message):
    plan = plan_of()
    with pytest.raises(StateError, match=f"(?s){message}"):
        require_continuation(closed(plan), replace(plan, **change), source, 0)


def test_a_declared_list_binds_from_its_first_release_on():
    """Nothing is drawn: any list goes on, whatever an earlier version wrote for it."""
    plan = plan_of(declared("a"), start=50)
    assert state_module.declared_digest(plan, 50) == ""
    assert len({state_module.declared_digest(plan_of(keys, start=50), 60) for keys in MODES.values()}) == 2
    for written in ("", "ab" * 16):
        state = replace(first_state(plan), declared=written)
        require_continuation(state, plan, SOURCE, 0)
        require_continuation(state, replace(plan, keys=declared("b")), SOURCE, 0)
        with pytest.raises(
            StateError, match=r"partition 0: privacy.declared changed.*at or after 1970-01-01T00:00:00.060Z"
        ):
            require_continuation(moved(state, cursor=b""), plan, SOURCE, 0)


def test_the_digest_of_a_list_is_the_one_that_is_in_states_of_earlier_versions():
    plan = plan_of(declared("a", since={"b": 60, "c": 70}), start=50)
    assert state_module.declared_digest(plan, 70) == "0caf55d5778341cb6bffec82be0902c2"


DECLARED = declared("a", "b", since={"c": 30, "d": 50, "e": 70})


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(declared("a", since={"c": 30, "d": 50, "e": 70}), id="withdrawn"),
        pytest.param(declared("a", "b", "x", since={"c": 30}), id="added to closed windows"),
        pytest.param(declared("a", "b", since={"c": 30, "x": 40}), id="added to the last closed window"),
        pytest.param(declared("a", "b", since={"c": 20}), id="earlier"),
        pytest.param(declared("a", "b", since={"c": 50}), id="later"),
    ],
)
def test_a_changed_past_of_declared_keys_is_refused(keys):
    plan = plan_of(DECLARED)
    with pytest.raises(StateError, match=r"(?s)privacy.declared changed.*at or after 1970-01-01T00:00:00.050Z"):
        require_continuation(closed(plan), replace(plan, keys=keys), SOURCE, 0)


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(declared("b", "a", since={"c": 30}), id="later keys taken back, another order"),
        pytest.param(declared("a", "b", since={"c": 30, "x": 50, "e": 60}), id="new ones, and another time"),
    ],
)
def test_the_future_of_declared_keys_may_change(keys):
    plan = plan_of(DECLARED)
    require_continuation(closed(plan), replace(plan, keys=keys), SOURCE, 0)


def test_a_window_decided_in_part_is_past_for_declared_keys():
    """With a cursor in window 50, its keys are fixed: one withdrawn is published, one added would be passed over."""
    plan = plan_of(declared("b", since={"c": 50}), max_transaction_bytes=1)
    rows = at((5, "b", 1), (65, "b", 1))
    log, _, _ = run(plan, [rows], Tape(1), finish=False)
    cursors = {
        state_in(step).base.closed_through_ms: state_in(step) for step in log.steps if state_in(step).base.cursor
    }
    state = cursors[50]
    require_continuation(state, plan, SOURCE, 0)
    for keys in (declared("b"), declared("b", since={"c": 50, "a": 50})):
        with pytest.raises(StateError, match=r"(?s)privacy.declared changed.*at or after 1970-01-01T00:00:00.060Z"):
            require_continuation(state, replace(plan, keys=keys), SOURCE, 0)
    require_continuation(state, replace(plan, keys=declared("b", since={"c": 50, "a": 60})), SOURCE, 0)
    with pytest.raises(StateError, match=r"not before 1970-01-01T00:00:00.060Z"):
        require_continuation(state, replace(plan, fingerprint="ff"), SOURCE, 0)
