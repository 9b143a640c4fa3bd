"""The private sketch: frozen, validated, a value."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from sfm_stream.errors import ShapeError, UsageError
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.sketch.shape import SketchShape

SHAPE = SketchShape(16, 4)
SKETCH = SfmSketch(SHAPE, 1 << 62, "xxh64", bytes.fromhex("0100 0080 ffff 0000"))


def test_bit_order_is_level_major_least_significant_first():
    cells = SKETCH.cells()
    assert cells.dtype == np.bool_
    assert cells.shape == (4, 16)
    assert np.argwhere(cells).tolist() == [[0, 0], [1, 15], *([2, bucket] for bucket in range(16))]
    assert SKETCH.ones().tolist() == cells.sum(axis=1).tolist() == [1, 1, 16, 0]


def test_it_is_frozen():
    for field in dataclasses.fields(SKETCH):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(SKETCH, field.name, None)
    with pytest.raises((AttributeError, TypeError)):
        SKETCH.note = "x"
    cells = SKETCH.cells()
    cells[:] = False
    assert SKETCH.cells().any()


def test_it_is_a_value():
    same = SfmSketch(SketchShape(16, 4), 1 << 62, "xxh64", bytes(SKETCH.bits))
    assert same == SKETCH
    assert hash(same) == hash(SKETCH)
    assert pickle.loads(pickle.dumps(SKETCH)) == SKETCH  # noqa: S301 -- its own bytes
    assert copy.deepcopy(SKETCH) == SKETCH


@pytest.mark.parametrize(
    "change",
    [{"shape": SketchShape(32, 2)}, {"flip_threshold": (1 << 62) + 1}, {"hash": "other"}, {"bits": bytes(8)}],
    ids=lambda change: next(iter(change)),
)
def test_digest_and_equality_see_every_field(change):
    other = dataclasses.replace(SKETCH, **change)
    assert other != SKETCH
    assert other.digest() != SKETCH.digest()
    assert len(SKETCH.digest()) == 32


@pytest.mark.parametrize("threshold", [0, -1, GRID // 2 + 1, GRID, True, 0.25, 4.0, None, "1", np.int64(5)], ids=repr)
def test_the_flip_threshold_is_validated(threshold):
    with pytest.raises(UsageError, match=r"^flip_threshold: "):
        SfmSketch(SHAPE, threshold, "xxh64", bytes(8))


@pytest.mark.parametrize("threshold", [1, GRID // 2])
def test_the_flip_threshold_at_the_edges(threshold):
    assert SfmSketch(SHAPE, threshold, "xxh64", bytes(8)).flip_probability == threshold / 2**64


@pytest.mark.parametrize("bits", [b"", bytes(7), bytes(9), bytearray(8), "00000000", None], ids=repr)
def test_bits_are_validated(bits):
    with pytest.raises(UsageError, match=r"^bits: "):
        SfmSketch(SHAPE, 1, "xxh64", bits)


@pytest.mark.parametrize("name", [b"xxh64", None, 1])
def test_the_hash_name_is_validated(name):
    with pytest.raises(UsageError, match=r"^hash: "):
        SfmSketch(SHAPE, 1, name, bytes(8))


def test_repr_is_short():
    assert repr(SKETCH) == "SfmSketch(16x4, q=0.25, xxh64)"


@pytest.mark.parametrize(
    ("buckets", "levels", "problem"),
    [
        (8, 4, "buckets: 8"),
        (131072, 4, "buckets: 131072"),
        (48, 4, "buckets: 48"),
        (16, 1, "levels: 1"),
        (16, 49, "levels: 49"),
        (16.0, 4, "buckets: expected an integer"),
        (16, True, "levels: expected an integer"),
    ],
)
def test_shapes_are_validated(buckets, levels, problem):
    with pytest.raises(ShapeError, match=problem):
        SketchShape(buckets, levels)


@pytest.mark.parametrize("shape", [SketchShape(16, 2), SketchShape(4096, 24), SketchShape(65536, 48)], ids=str)
def test_cell_probabilities_sum_to_one_exactly(shape):
    assert shape.rho.sum() * shape.buckets == 1.0
    assert shape.rho[-1] == shape.rho[-2]
    assert shape.nbytes * 8 == shape.cells == shape.rho.size << shape.bucket_bits
