"""The committed state as bytes: what earlier versions wrote is read, and written again as they did."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.counting_runs import moved

from sfm_stream.errors import StateError
from sfm_stream.pipeline.counting.position import decode_state, encode_state
from sfm_stream.types import Commit, PartitionState, SpanProgress

EARLIER = b'[1,"0123","1","in.jsonl",900000,0,99,1800000,1700000,42,"",null]'.replace(b'"1"', b"1")
STATE = PartitionState("0123", 1, "in.jsonl", 0, 99, (SpanProgress(900_000, 1_800_000),), 1_700_000, 42)


def test_a_state_without_a_mark_is_as_it_was():
    assert encode_state(STATE) == EARLIER
    assert decode_state(Commit(0, 42, EARLIER)) == STATE


@pytest.mark.parametrize("cursor", [None, b"", b"\x00\xffkey"])
def test_a_state_with_a_mark_comes_back(cursor):
    state = replace(moved(STATE, cursor=cursor), mark="ends:42:" + "0" * 32)
    assert decode_state(Commit(0, 42, encode_state(state))) == state


@pytest.mark.parametrize("tail", [b'"",null,"m","more"]', b'"",null,7]', b'""]', b'"",null,null]'])
def test_other_shapes_are_refused(tail):
    with pytest.raises(StateError, match="cannot be read"):
        decode_state(Commit(0, 42, EARLIER[: EARLIER.index(b'"",null')] + tail))
