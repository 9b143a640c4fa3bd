"""Which rows are in another partition than that of their key, against a loop over the keys."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner import murmur2 as kafka_python_murmur2

from sfm_stream.errors import UsageError
from sfm_stream.events.key_table import KeyTable
from sfm_stream.events.partitioner import PARTITIONERS, partition_key
from sfm_stream.events.placement import Placement
from sfm_stream.types import EventColumns, Reason
from sfm_stream.wire.keys import encode_key


def rows(table: KeyTable, keys: list, new: tuple[int, ...] = ()) -> EventColumns:
    """Columns of these keys; None for a row that is dropped."""
    ids = table.ids_of(keys)
    times = np.zeros(len(ids), np.int64)
    reasons = (ids < 0).astype(np.uint8)
    return EventColumns(0, len(ids), np.arange(len(ids)), times, times, ids, ids.astype(np.uint32), reasons, new)


class Asked:
    """murmur2 that counts how often it is asked."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []

    def __call__(self, key: bytes, partitions: int) -> int:
        self.keys.append(key)
        return PARTITIONERS["murmur2"](key, partitions)


@given(
    st.integers(1, 5).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))),
    st.lists(st.lists(st.none() | st.integers(0, 30) | st.text(max_size=3), max_size=20), max_size=12),
    st.randoms(use_true_random=False),
)
def test_rows_are_misplaced_as_a_loop_over_their_keys_finds(place, batches, rng):
    """With keys freed between batches, whose ids then belong to other keys."""
    partitions, partition = place
    table, asked = KeyTable(), Asked()
    placement = Placement(asked, partition, partitions)
    for keys in batches:
        wanted = [key for key in dict.fromkeys(keys) if key is not None and table.id_of(key) < 0]
        new = tuple(map(table.intern, wanted))
        asked.keys.clear()
        found = placement.misplaced(rows(table, keys, new), table)
        loop = [k is not None and PARTITIONERS["murmur2"](partition_key(k), partitions) != partition for k in keys]
        assert found.dtype == np.bool_
        assert found.tolist() == loop
        assert asked.keys.count(b"") <= 1
        assert len(asked.keys) == len(wanted)
        live = [key_id for key_id in map(table.id_of, table) if rng.random() < 0.6]
        table.retain(np.array(live, np.int32))


def test_a_fixed_table_names_no_new_keys():
    table = KeyTable([f"k{n}" for n in range(500)])
    asked = Asked()
    placement = Placement(asked, 2, 4)
    keys = ["k499", None, "k0", "k499", "k7"]
    loop = [key is not None and PARTITIONERS["murmur2"](key.encode(), 4) != 2 for key in keys]
    assert placement.misplaced(rows(table, keys), table).tolist() == loop
    assert placement.misplaced(rows(table, keys), table).tolist() == loop
    assert sorted(asked.keys) == [b"k0", b"k499", b"k7"]


def test_new_keys_without_rows_are_asked_for_when_they_come():
    """A row is dropped for another reason after its key was interned."""
    table = KeyTable()
    new = (table.intern("a"), table.intern("b"))
    placement = Placement(Asked(), 0, 2)
    assert placement.misplaced(rows(table, [None, None], new), table).tolist() == [False, False]
    expected = [PARTITIONERS["murmur2"](key, 2) != 0 for key in (b"b", b"a")]
    assert placement.misplaced(rows(table, ["b", "a"]), table).tolist() == expected
    assert placement.misplaced(rows(table, []), table).shape == (0,)


KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.integers(-(1 << 63), (1 << 63) - 1)


@given(KEYS | st.lists(KEYS, max_size=3).map(tuple), st.sampled_from(sorted(PARTITIONERS)), st.integers(1, 12))
def test_each_key_has_one_owner_which_is_where_its_producer_puts_it(key, name, partitions):
    owners = [n for n in range(partitions) if Placement(PARTITIONERS[name], n, partitions).owns(key)]
    sent = key.encode() if isinstance(key, str) else b"%d" % key if isinstance(key, int) else encode_key(key)
    digest = zlib.crc32(sent) if name == "crc32" else kafka_python_murmur2(sent) & 0x7FFFFFFF
    assert owners == [digest % partitions]


def test_rows_that_are_dropped_already_keep_their_reason():
    table = KeyTable([f"k{n}" for n in range(20)])
    here, *_, elsewhere = sorted(table, key=lambda key: PARTITIONERS["murmur2"](key.encode(), 2))
    placement = Placement(PARTITIONERS["murmur2"], 0, 2)
    columns = rows(table, [here, elsewhere, None, elsewhere])
    columns.reasons[:] = [Reason.OK, Reason.OK, Reason.MALFORMED, Reason.ITEM_MISSING]
    judged = placement.judged(columns, table)
    assert judged.reasons.tolist() == [Reason.OK, Reason.KEY_MISPLACED, Reason.MALFORMED, Reason.ITEM_MISSING]
    assert placement.judged(rows(table, [here, None]), table).reasons.tolist() == [Reason.OK, 1]


@pytest.mark.parametrize(("partition", "partitions"), [(-1, 3), (3, 3), (0, 0)])
def test_a_partition_that_there_is_not(partition, partitions):
    with pytest.raises(UsageError):
        Placement(PARTITIONERS["crc32"], partition, partitions)
