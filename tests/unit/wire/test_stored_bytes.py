"""The bytes of each stored state, as every version so far has written them: what is committed must stay readable."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.counting_runs import moved
from support.rollup_runs import QUARTER_MS, at, marker, release

from sfm_stream.pipeline.counting.position import decode_state, encode_state
from sfm_stream.pipeline.outbox import OutboxCopy
from sfm_stream.pipeline.rollup.position import (
    Cursor,
    EpochState,
    RollupState,
    SpanPosition,
    decode_rollup_state,
    encode_rollup_state,
)
from sfm_stream.transport.kafka.ledger_entry import entry_key, entry_value
from sfm_stream.types import Commit, PartitionState, SpanProgress
from sfm_stream.wire.keys import encode_key

A = encode_key("a")
COUNTING = PartitionState("0123", 3, "in.jsonl", 0, 99, (SpanProgress("15m", 1_800_000),), 1_700_000, 42)
COUNTED = {
    "no cursor": (COUNTING, b'["v",3,"in.jsonl",900000,0,99,1800000,1700000,42,"",null]'),
    "a cursor": (
        replace(moved(COUNTING, cursor=b"\x91\xa1a\xff"), declared="ab"),
        b'["v",3,"in.jsonl",900000,0,99,1800000,1700000,42,"ab","kaFh/w=="]',
    ),
    "an empty cursor": (
        moved(COUNTING, cursor=b""),
        b'["v",3,"in.jsonl",900000,0,99,1800000,1700000,42,"",""]',
    ),
    "a mark": (
        replace(COUNTING, mark="ends:42:ff", source="ü", clock_ms=-1),
        '["v",3,"ü",900000,0,99,1800000,-1,42,"",null,"ends:42:ff"]'.encode(),
    ),
}
ROLLED_UP = {
    "no epoch": (RollupState("UTC", 7, ()), b'[1,"UTC",7,[]]'),
    "two epochs": (
        RollupState(
            "Asia/Kathmandu",
            5,
            (
                EpochState(1, 4, (SpanPosition(None, 900_000, 0, 3_600_000, Cursor(3_600_000, 1, b"\x91\xa1a")),)),
                EpochState(2, 4, (SpanPosition(None, 60_000, 0, 0, Cursor(0, 0, None)),)),
            ),
        ),
        b'[1,"Asia/Kathmandu",5,['
        b'{"epoch":1,"partitions":4,"window_ms":900000,"from_ms":0,"through_ms":3600000,'
        b'"cursor":{"end_ms":3600000,"rank":1,"key":"kaFh"}},'
        b'{"epoch":2,"partitions":4,"window_ms":60000,"from_ms":0,"through_ms":0,'
        b'"cursor":{"end_ms":0,"rank":0,"key":null}}]]',
    ),
    "an epoch without names, and one with them": (
        RollupState(
            "UTC",
            5,
            (
                EpochState(1, 4, (SpanPosition(None, 60_000, 0, 60_000, Cursor(0, 0, None)),)),
                EpochState(
                    2,
                    4,
                    (
                        SpanPosition("5m", 0, 60_000, 3_600_000, Cursor(0, 0, None)),
                        SpanPosition("hour", 0, 0, 3_600_000, Cursor(3_600_000, 1, b"\x91\xa1a")),
                    ),
                ),
            ),
        ),
        b'[2,"UTC",5,['
        b'{"epoch":1,"partitions":4,"spans":[{"span":null,"window_ms":60000,"from_ms":0,"through_ms":60000,'
        b'"cursor":{"end_ms":0,"rank":0,"key":null}}]},'
        b'{"epoch":2,"partitions":4,"spans":[{"span":"5m","window_ms":0,"from_ms":60000,"through_ms":3600000,'
        b'"cursor":{"end_ms":0,"rank":0,"key":null}},'
        b'{"span":"hour","window_ms":0,"from_ms":0,"through_ms":3600000,'
        b'"cursor":{"end_ms":3600000,"rank":1,"key":"kaFh"}}]}]]',
    ),
}


@pytest.mark.parametrize(("state", "stored"), COUNTED.values(), ids=COUNTED)
def test_the_state_of_a_counted_partition(state, stored):
    stored = stored.replace(b'"v"', b'1,"0123"')
    assert encode_state(state) == stored
    assert decode_state(Commit(0, 42, stored)) == state


@pytest.mark.parametrize(("state", "stored"), ROLLED_UP.values(), ids=ROLLED_UP)
def test_the_state_of_a_roll_up(state, stored):
    assert encode_rollup_state(state) == stored
    assert decode_rollup_state(Commit(0, state.offset, stored)) == state


def test_the_state_of_a_copied_partition():
    start = at("2026-01-01")
    copy = OutboxCopy("views", 0, 1 << 20)
    for offset, (key, payload) in enumerate(
        [(A, release(start)), (b"", marker(start, start + QUARTER_MS)), (A, release(start + QUARTER_MS))]
    ):
        copy.add(offset, key, payload)
    step = copy.step()
    assert step is not None
    assert step.commit == (Commit(0, 3, b"[1,3,2]"),)
    assert OutboxCopy("views", 0, 1).restore(step.commit[0]) == 2


def test_an_entry_of_the_ledger():
    commit = Commit(3, 42, b'[1,"0123"]\xff')
    assert entry_value(commit, "name-7") == b'[1,42,"WzEsIjAxMjMiXf8=","name-7"]'
    assert entry_key("ingest/1", 3) == b"ingest/1/3"
