"""Laws of hashing: the golden hashes, one canonical encoding per item, one cell per item, and quiet refusals."""

import enum
import hashlib
import json
import math
import struct
import traceback
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from reference.presto_reader import cell_of

from sfm_stream.errors import ItemError
from sfm_stream.sketch.hashing import (
    XXH64,
    ItemHash,
    encode_item,
    hash_encoded,
    hash_items,
    keyed_blake2b,
)
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.shape import SketchShape

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "presto.json").read_text())
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ITEMS = st.one_of(INT64, st.floats(), TEXT, st.binary())
SHAPES = st.builds(SketchShape, st.sampled_from([16, 512, 4096, 65536]), st.integers(2, 48))


def library_hashes(items):
    """The column through the xxhash library, one item at a time."""
    return [xxhash.xxh64_intdigest(encode_item(item), seed=0) for item in items]


# Golden hashes


@pytest.mark.parametrize("golden", GOLDEN["hashes_12_index_bits_24_levels"], ids=lambda golden: repr(golden["item"]))
def test_golden_hash_and_cell(golden):
    hashes = hash_items([golden["item"]])
    assert hashes.dtype == np.uint64
    assert hashes.tolist() == [int(golden["hash"], 16)]
    assert SketchShape(4096, 24).cells_of(hashes).tolist() == [golden["level"] * 4096 + golden["bucket"]]


def test_golden_hash_of_an_integer_array():
    assert hash_items(np.array([1, 2])).tolist() == [0x9F29CB17A2A49995, 0xEAC73E4044E82DB0]


# The vectorised path equals the library


@given(
    hnp.arrays(hnp.integer_dtypes(endianness="?") | hnp.unsigned_integer_dtypes(sizes=(8, 16, 32)), st.integers(0, 9))
)
def test_integer_arrays_hash_like_the_library(column):
    assert hash_items(column).tolist() == library_hashes(column.tolist())


@given(hnp.arrays(np.int64, st.integers(0, 9), elements=INT64))
def test_full_range_int64_hashes_like_the_library(column):
    assert hash_items(column).tolist() == library_hashes(column.tolist()) == hash_items(column.tolist()).tolist()


@given(hnp.arrays(hnp.floating_dtypes(sizes=(16, 32, 64), endianness="?"), st.integers(0, 9)))
def test_float_arrays_hash_like_the_library(column):
    assert hash_items(column).tolist() == library_hashes(column.astype(float).tolist())


@given(st.lists(ITEMS))
def test_mixed_columns_hash_like_the_library(column):
    assert hash_items(column).tolist() == library_hashes(column)
    assert hash_encoded(map(encode_item, column), len(column)).tolist() == library_hashes(column)


@pytest.mark.parametrize("kind", ["U3", "S3", object])
def test_text_arrays_hash_like_lists(kind):
    column = np.array(["a", "bc", "a"], kind)
    assert hash_items(column).tolist() == hash_items(column.tolist()).tolist() == library_hashes(["a", "bc", "a"])


def test_a_shaped_array_is_one_column():
    assert hash_items(np.arange(6).reshape(2, 3)).tolist() == hash_items(range(6)).tolist()
    assert hash_items(np.array(5)).tolist() == hash_items([5]).tolist()
    assert hash_items(np.arange(6)[::2]).tolist() == hash_items([0, 2, 4]).tolist()


# Type rules


@pytest.mark.parametrize(
    ("item", "encoded"),
    [
        (1, b"\x01" + bytes(7)),
        (-1, b"\xff" * 8),
        (2**63 - 1, b"\xff" * 7 + b"\x7f"),
        (-(2**63), bytes(7) + b"\x80"),
        (1.0, bytes.fromhex("000000000000f03f")),
        (0.0, bytes(8)),
        (-0.0, bytes(7) + b"\x80"),
        (math.inf, bytes.fromhex("000000000000f07f")),
        ("", b""),
        ("a", b"a"),
        ("é", b"\xc3\xa9"),
        ("a\0", b"a\0"),
        (b"\xff\x00", b"\xff\x00"),
        (np.int8(-1), b"\xff" * 8),
        (np.uint64(2**63 - 1), b"\xff" * 7 + b"\x7f"),
        (np.float32(1.0), bytes.fromhex("000000000000f03f")),
        (np.float16(1.0), bytes.fromhex("000000000000f03f")),
        (np.float64(1.0), bytes.fromhex("000000000000f03f")),
        (np.str_("a"), b"a"),
        (enum.IntEnum("E", {"one": 1}).one, b"\x01" + bytes(7)),
        (enum.Enum("Loud", {"red": "r"}, type=str).red, b"r"),
    ],
    ids=repr,
)
def test_canonical_bytes(item, encoded):
    assert encode_item(item) == encoded


@pytest.mark.parametrize("bits", [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF])
def test_every_nan_is_one_item(bits):
    (item,) = struct.unpack("<d", struct.pack("<Q", bits))
    assert encode_item(item) == bytes(6) + b"\xf8\x7f"
    column = np.array([bits], np.uint64).view(np.float64)
    assert hash_items(column).tolist() == hash_items([math.nan]).tolist()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bits", [0x7FC00000, 0x7F800001, 0xFFC00000])
def test_a_narrow_nan_is_the_same_item_without_a_warning(bits):
    column = np.array([bits], np.uint32).view(np.float32)
    assert hash_items(column).tolist() == hash_items([math.nan]).tolist()


def test_signed_zeros_differ():
    assert hash_items(np.array([0.0]))[0] != hash_items(np.array([-0.0]))[0]


def test_numbers_and_text_that_look_alike_are_different_items():
    hashes = hash_items([1, "1", 1.0, "True", b"\x01", "1.0"])
    assert len(set(hashes.tolist())) == 6
    with pytest.raises(ItemError, match="bool"):
        hash_items([True])


class Secretive:
    def __repr__(self):
        return "SECRET-4711"


REFUSED = [
    True,
    False,
    np.bool_(True),
    None,
    2**63,
    -(2**63) - 1,
    10**400,
    np.uint64(2**63),
    np.longdouble("0.1"),
    4711j,
    Decimal("4711"),
    np.datetime64("2026-01-01"),
    np.timedelta64(4711, "s"),
    ("SECRET-4711",),
    bytearray(b"SECRET-4711"),
    Secretive(),
    "SECRET-4711\ud800",
    "\udfff",
]


@pytest.mark.parametrize("item", REFUSED, ids=lambda item: type(item).__name__)
def test_an_item_without_a_canonical_encoding_is_refused_and_not_echoed(item):
    for attempt in (lambda: encode_item(item), lambda: hash_items([1, item])):
        with pytest.raises(ItemError) as caught:
            attempt()
        error = caught.value
        # The whole chain, as a log would print it, and the objects in it, as a debugger would.
        assert error.__context__ is None
        assert error.__cause__ is None
        told = "".join(traceback.format_exception_only(error)) + repr(error.args)
        for part in ("4711", "SECRET", "9223372036854775808", "9223372036854775809", "2026", "\\ud", "0.1"):
            assert part not in told


@pytest.mark.parametrize(
    "column",
    [
        np.array([2**63], np.uint64),
        np.array([1, 2**64 - 1], np.uint64),
        np.array([True]),
        np.array([1j]),
        np.array([1], np.longdouble),
        np.array([1], "M8[ns]"),
        np.array([1], "m8[ns]"),
        np.array(["2026-01-01"], "M8[D]"),
        np.array([1, None], object),
        np.ma.array([1, 2], mask=[False, True]),
        [[1]],
    ],
    ids=lambda column: str(getattr(column, "dtype", "list")),
)
def test_arrays_without_a_canonical_encoding_are_refused(column):
    with pytest.raises(ItemError):
        hash_items(column)


@pytest.mark.parametrize(
    "value", ["abc", b"abc", bytearray(b"abc"), memoryview(b"abc")], ids=lambda v: type(v).__name__
)
def test_one_value_is_not_a_column(value):
    with pytest.raises(ItemError, match="column"):
        hash_items(value)


def test_uint64_within_int64_is_an_integer_like_any_other():
    assert hash_items(np.array([0, 2**63 - 1], np.uint64)).tolist() == hash_items([0, 2**63 - 1]).tolist()
    assert hash_items(np.array([], np.uint64)).tolist() == []


def test_a_refused_column_adds_nothing():
    sketch = PcsaSketch(SketchShape(16, 2))
    with pytest.raises(ItemError):
        sketch.add([1, 2, True])
    assert sketch.popcount() == 0


# Keyed hash


def test_keyed_blake2b_is_blake2b_under_its_key():
    key = bytes(range(16))
    keyed = keyed_blake2b(key)
    wanted = int.from_bytes(hashlib.blake2b(b"a", digest_size=8, key=key).digest(), "big")
    assert hash_items(["a"], keyed).tolist() == [wanted]
    number = int.from_bytes(hashlib.blake2b(b"\x01" + bytes(7), digest_size=8, key=key).digest(), "big")
    assert hash_items(np.array([1]), keyed).tolist() == hash_items([1], keyed).tolist() == [number]


def test_the_public_name_tells_keys_apart_without_telling_the_key():
    first, again, other = (keyed_blake2b(key) for key in (b"k" * 16, b"k" * 16, b"k" * 17))
    assert first.name == again.name != other.name
    assert first.name.startswith("blake2b:")
    assert b"k" * 16 not in repr(first).encode()
    assert (b"k" * 16).hex() not in repr(first)
    assert hash_items(["a"], first).tolist() == hash_items(["a"], again).tolist() != hash_items(["a"], other).tolist()


@pytest.mark.parametrize("length", [0, 15, 65])
def test_key_lengths_are_bounded(length):
    with pytest.raises(ItemError, match="16 to 64 bytes"):
        keyed_blake2b(bytes(length))
    assert keyed_blake2b(bytes(16)).name != keyed_blake2b(bytes(64)).name


# Cells


@given(st.lists(st.integers(0, 2**64 - 1)), SHAPES)
def test_cells_equal_the_naive_ones(hashes, shape):
    cells = shape.cells_of(np.array(hashes, np.uint64))
    assert cells.dtype == np.uint32
    assert cells.tolist() == [cell_of(h, shape.bucket_bits, shape.levels) for h in hashes]


@pytest.mark.parametrize("shape", [SketchShape(16, 2), SketchShape(4096, 24), SketchShape(65536, 48)], ids=str)
def test_cells_at_the_edges(shape):
    n = shape.bucket_bits
    edges = [0, 2**64 - 1, 1 << (64 - n), (1 << (64 - n)) - 1, 1 << (63 - n), *(1 << bit for bit in range(64))]
    cells = shape.cells_of(np.array(edges, np.uint64))
    assert cells.tolist() == [cell_of(h, n, shape.levels) for h in edges]
    assert int(cells.max()) < shape.cells


@given(ITEMS, SHAPES)
def test_one_item_lights_one_cell(item, shape):
    """NaN stands for a missing value in a column."""
    missing = isinstance(item, float) and math.isnan(item)
    assert PcsaSketch(shape).add([item]).popcount() == (not missing)


@given(st.lists(ITEMS, max_size=20), ITEMS, SHAPES)
def test_one_more_item_lights_at_most_one_more_cell(items, extra, shape):
    before, after = PcsaSketch(shape).add(items), PcsaSketch(shape).add([*items, extra])
    changed = np.bitwise_count(before.bits ^ after.bits).sum()
    assert changed <= 1
    assert after.popcount() - before.popcount() == changed


def test_level_probabilities_follow_the_hash():
    """Exact over all 2^12 low endings of a hash: level l holds 2^-(l+1) of them, the last level the rest."""
    shape = SketchShape(16, 6)
    levels = shape.cells_of(np.arange(4096, dtype=np.uint64) | np.uint64(1 << 59)) // 16
    assert np.bincount(levels).tolist() == [2048, 1024, 512, 256, 128, 128]
    assert (np.bincount(levels) / 4096 == shape.rho * 16).all()


def test_an_unnamed_hash_of_ones_own_is_used_as_given():
    constant = ItemHash("constant", lambda data: 7)
    assert hash_items(np.arange(3), constant).tolist() == [7, 7, 7]
    assert XXH64.name == "xxh64"
