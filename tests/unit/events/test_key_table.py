"""Keys to ids and back, with both kernels: types, ids that are used again, fixed tables, memory."""

import gc
import sys
import tracemalloc

import numpy as np
import pytest

from sfm_stream import kernels
from sfm_stream.events.dict_index import DictIndex
from sfm_stream.events.key_table import KeyTable

pytestmark = pytest.mark.usefixtures("kernel")


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
        keys = [key for key in dict.fromkeys(rng.integers(0, 300, 40).tolist()) if together.id_of(key) < 0]
        assert together.intern_new(keys) == [one_by_one.intern(key) for key in keys]
        live = np.array([key_id for key_id in together.ids_of(list(together)).tolist() if rng.random() < 0.3], np.int32)
        for table in (together, one_by_one):
            table.retain(live)
        assert [(key, together.id_of(key)) for key in together] == [(key, one_by_one.id_of(key)) for key in one_by_one]


def test_a_freed_id_names_nothing():
    table = KeyTable()
    table.intern("a")
    table.intern("b")
    table.retain(ids(1))
    with pytest.raises(KeyError):
        table[0]
    assert table[1] == "b"
    assert table.intern("c") == 0


@pytest.mark.parametrize("key_id", [0, 1, -1, 1 << 40])
def test_an_id_that_no_key_ever_had_names_nothing(key_id):
    table = KeyTable()
    with pytest.raises(KeyError):
        table[key_id]


def test_ids_above_all_that_are_in_use_are_forgotten():
    table = KeyTable()
    assert table.intern_new(["a", "b", "c", "d"]) == [0, 1, 2, 3]
    table.retain(ids(1))
    assert table.intern_new(["e", "f", "g"]) == [0, 2, 3]


def test_a_table_is_of_the_kernel_that_was_chosen_when_it_was_made(kernel):
    table = KeyTable()
    kernels.choose("python")
    assert isinstance(table.index, DictIndex) == (kernel == "python")
    assert isinstance(KeyTable().index, DictIndex)


def test_so_many_keys_that_some_share_a_hash_are_told_apart():
    """The hash has 32 bits, so that of 400,000 keys about 19 pairs have the same; none has with a chance of e^-19."""
    table, keys = KeyTable(), [f"k{number}" for number in range(400_000)]
    assert table.intern_new(keys) == list(range(len(keys)))
    assert (table.ids_of(keys) == np.arange(len(keys))).all()
    assert (table.ids_of([f"j{number}" for number in range(len(keys))]) == -1).all()


def room_of(make):
    """Bytes that a table takes once `make` has filled it, those of keys that only it holds among them."""
    gc.collect()
    tracemalloc.start()
    try:
        table = make()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] + sys.getsizeof(table.index)
    finally:
        tracemalloc.stop()


def test_memory_is_given_back_with_the_keys(kernel):
    def come_and_gone():
        table = KeyTable()
        table.intern_new([f"some longer name of a key, {number}" for number in range(100_000)])
        full.append(sys.getsizeof(table.index))
        table.retain(ids(5, 6, 7))
        return table

    full: list[int] = []
    assert room_of(come_and_gone) < 4_000
    assert kernel == "python" or full[0] > 5_000_000


def test_memory_does_not_grow_with_the_keys_ever_seen():
    def many_windows():
        table = KeyTable()
        for window in range(60):
            table.intern_new([f"window {window:03} key {number:04}" for number in range(1000)])
            table.retain(table.ids_of([f"window {window:03} key {number:04}" for number in range(0, 1000, 2)]))
        return table

    def one_window():
        table = KeyTable()
        table.intern_new([f"window {0:03} key {number:04}" for number in range(1000)])
        return table

    assert room_of(many_windows) < 2.5 * room_of(one_window)


def test_a_key_of_fourteen_characters_takes_less_than_70_bytes_in_the_compiled_table(kernel):
    def full():
        table = KeyTable()
        table.intern_new([f"/page/{number:08}" for number in range(100_000)])
        return table

    assert room_of(full) / 100_000 < (70 if kernel == "native" else 160)


def test_only_a_key_is_interned_and_an_error_does_not_hold_it(kernel):
    if kernel == "python":
        return  # takes what can be hashed; keys are checked where they are read
    table = KeyTable()
    for secret in (1.25, ("secret", None), 1 << 70, ["secret"], None):
        with pytest.raises(TypeError, match=r"^a key is text, bytes, an integer of 64 bits, or a tuple of these$"):
            table.intern_new([secret])
    assert (len(table), list(table)) == (0, [])
    assert "secret" not in repr(table.index)


def test_an_id_that_no_key_has_cannot_stay():
    table = KeyTable()
    table.intern("a")
    for wrong in (1, -7):
        with pytest.raises(IndexError):
            table.retain(ids(wrong))
