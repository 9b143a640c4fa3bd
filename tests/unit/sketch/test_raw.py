"""Laws of the raw sketch: a set union that forgets order and repeats, and no way out for its content."""

import copy
import json
import operator
import pickle

import numpy as np
import pytest

from sfm_stream.errors import IncompatibleError, UsageError
from sfm_stream.sketch.hashing import hash_items, keyed_blake2b
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.shape import SketchShape

SHAPE = SketchShape(64, 8)
PRIVATE = SfmSketch(SHAPE, 1 << 62, "xxh64", bytes(SHAPE.nbytes))


def raw(*items):
    return PcsaSketch(SHAPE).add(items)


def content(sketch):
    return sketch.bits.tobytes()


def test_a_new_sketch_is_empty():
    assert content(PcsaSketch(SHAPE)) == bytes(SHAPE.nbytes)
    assert PcsaSketch(SHAPE).popcount() == 0


def test_adding_lights_the_cell_of_the_item():
    (cell,) = SHAPE.cells_of(hash_items(["a"])).tolist()
    assert np.flatnonzero(np.unpackbits(raw("a").bits, bitorder="little")).tolist() == [cell]


def test_adding_again_changes_nothing():
    assert content(raw("a", "b", "a")) == content(raw("a", "b"))
    sketch = raw("a")
    assert sketch.add(["a"]) is sketch
    assert content(sketch) == content(raw("a"))


def test_order_and_batches_do_not_matter():
    batched = PcsaSketch(SHAPE).add(["c"]).add(["b", "a"]).add([])
    assert content(batched) == content(raw("a", "b", "c")) == content(raw("b", "c", "a"))


def test_many_items_on_one_byte_are_all_kept():
    """Two cells of one byte in one batch: an unbuffered OR, or one would be lost."""
    sketch = PcsaSketch(SketchShape(16, 2)).add(np.arange(1000))
    assert sketch.popcount() == 32


def test_or_is_the_union():
    left, right = raw(1, 2, 3), raw(3, 4)
    left |= right
    assert content(left) == content(raw(1, 2, 3, 4))
    assert content(right) == content(raw(3, 4))
    left |= left
    assert content(left) == content(raw(1, 2, 3, 4))


def test_of_bits_builds_the_same_sketch():
    source = raw(1, 2, 3).bits.copy()
    built = PcsaSketch.of_bits(SHAPE, source)
    source[:] = 0
    assert content(built) == content(raw(1, 2, 3))


@pytest.mark.parametrize("size", [0, 1, SHAPE.nbytes - 1, SHAPE.nbytes + 1])
def test_of_bits_refuses_another_length(size):
    with pytest.raises(UsageError, match="bits"):
        PcsaSketch.of_bits(SHAPE, np.ones(size, np.uint8))


def test_incompatible_sketches_are_named():
    wide, keyed = PcsaSketch(SketchShape(128, 8)), PcsaSketch(SHAPE, keyed_blake2b(bytes(16)))
    with pytest.raises(IncompatibleError, match="64x8 xxh64 against 128x8 xxh64"):
        operator.ior(raw(1), wide)
    with pytest.raises(IncompatibleError, match="64x8 xxh64 against 64x8 blake2b:"):
        operator.ior(raw(1), keyed)
    same_key = PcsaSketch(SHAPE, keyed_blake2b(bytes(16))).add([1])
    same_key |= PcsaSketch(SHAPE, keyed_blake2b(bytes(16))).add([2])
    assert same_key.popcount() == 2


@pytest.mark.parametrize("operation", [operator.or_, operator.ior, operator.add, operator.iadd, operator.and_])
@pytest.mark.parametrize("pair", [(raw(1), PRIVATE), (PRIVATE, raw(1))], ids=["raw first", "private first"])
def test_raw_and_private_never_combine(operation, pair):
    with pytest.raises(TypeError):
        operation(*pair)


def test_bits_are_a_copy_of_which_nothing_can_be_written():
    sketch = raw(1)
    bits = sketch.bits
    with pytest.raises(ValueError, match="read-only"):
        bits[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        bits.setflags(write=True)
    base = bits
    while isinstance(base, np.ndarray):
        assert not base.flags.writeable
        base = base.base
    assert type(base) is bytes, "nothing behind it leads to the sketch's own memory"
    before = bits.tobytes()
    sketch.add([2, 3, 4])
    assert bits.tobytes() == before != sketch.bits.tobytes()


# Secrecy


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_no_pickle(protocol):
    for value in (raw(1), [raw(1)], {"key": raw(1)}):
        with pytest.raises(TypeError, match="secret"):
            pickle.dumps(value, protocol)


WAYS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy of a list": lambda sketch: copy.deepcopy([sketch]),
    "replace": lambda sketch: sketch.__copy__(),
    "state": lambda sketch: sketch.__getstate__(),
    "state of its class": lambda sketch: type(sketch).__getstate__(sketch),
    "reduce": lambda sketch: sketch.__reduce__(),
    "reduce_ex": lambda sketch: sketch.__reduce_ex__(2),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_copy(way):
    way = WAYS[way]
    with pytest.raises(TypeError, match="secret"):
        way(raw(1))


@pytest.mark.parametrize("compare", [operator.eq, operator.ne])
@pytest.mark.parametrize("other", [raw(1), PRIVATE, None, 0], ids=["raw", "private", "None", "int"])
def test_no_comparison(compare, other):
    with pytest.raises(TypeError):
        compare(raw(1), other)


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_no_order(compare):
    with pytest.raises(TypeError):
        compare(raw(1), raw(2))


@pytest.mark.parametrize("way", [hash, bytes, json.dumps, vars, iter, len, int, lambda s: np.asarray(s, np.uint8)])
def test_no_other_representation(way):
    with pytest.raises(TypeError):
        way(raw(1))


def test_text_forms_show_no_content():
    for show in (repr, str, "{}".format, "{!r}".format, "%s".__mod__):
        assert show(raw(1)) == show(PcsaSketch(SHAPE)) == "<PcsaSketch 64x8 xxh64, content withheld>"


def test_no_attribute_can_be_attached():
    with pytest.raises(AttributeError):
        raw(1).items = [1]
