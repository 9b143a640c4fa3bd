"""Keys to ids and back: types, ids that are used again, fixed tables."""

import numpy as np
import pytest

from sfm_stream.events.key_table import KeyTable


def ids(*values):
    return np.array(values, np.int32)


def test_falsy_keys_are_keys():
    table = KeyTable()
    falsy = [0, "", (), b"", ("",), (0,)]
    numbers = [table.intern(key) for key in falsy]
    assert numbers == list(range(len(falsy)))
    assert [table[number] for number in numbers] == falsy
    assert [table.intern(key) for key in falsy] == numbers
    table.retain(ids(0, 2))
    assert list(table) == [0, ()]
    assert (table[0], table[2]) == (0, ())


def test_keys_of_different_types_are_different_keys():
    table = KeyTable()
    keys = [1, "1", b"1", (1,), ("1",), ("1", ""), "", "01", "1 "]
    assert [table.intern(key) for key in keys] == list(range(len(keys)))


@pytest.mark.parametrize("key", [0, "", ()])
def test_a_declared_falsy_key_is_found_and_no_other_is_taken(key):
    table = KeyTable([key, "other"])
    assert table.intern(key) == 0
    assert table.intern("new") == -1
    table.retain(ids())
    assert list(table) == [key, "other"]
    assert table[0] == key


def test_ids_are_used_again_and_never_point_at_a_live_key():
    """A thousand windows of keys that come and go: at every moment ids and live keys are one to one."""
    rng = np.random.default_rng(5)
    table, live = KeyTable(), {}
    highest = 0
    for _ in range(1000):
        for number in rng.integers(0, 400, 30).tolist():
            key_id = table.intern(number)
            assert live.setdefault(number, key_id) == key_id, "the id of a live key changed"
        assert len(set(live.values())) == len(live), "two live keys share an id"
        assert {number: table[key_id] for number, key_id in live.items()} == {number: number for number in live}
        highest = max(highest, *live.values())
        live = {number: key_id for number, key_id in live.items() if rng.random() < 0.4}
        table.retain(np.array(sorted(live.values()), np.int32))
        assert len(table) == len(live)
    assert highest < 100, "ids are not used again: memory grows with the keys ever seen"


def test_many_new_keys_get_the_ids_that_they_would_get_one_by_one():
    rng = np.random.default_rng(7)
    together, one_by_one = KeyTable(), KeyTable()
    for _ in range(100):
        keys = [key for key in dict.fromkeys(rng.integers(0, 300, 40).tolist()) if key not in together.ids]
        assert together.intern_new(keys) == [one_by_one.intern(key) for key in keys]
        live = np.flatnonzero(rng.random(300) < 0.3).astype(np.int32)
        for table in (together, one_by_one):
            table.retain(live[live < len(table._values)])
        assert together.ids == one_by_one.ids
        assert (together._values, together._free) == (one_by_one._values, one_by_one._free)


def test_a_freed_id_names_nothing():
    table = KeyTable()
    table.intern("a")
    table.intern("b")
    table.retain(ids(1))
    with pytest.raises(KeyError):
        table[0]
    assert table[1] == "b"
    assert table.intern("c") == 0
