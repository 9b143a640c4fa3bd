"""The tally: counts, refusals by name, and the histogram the estimator reads. Its laws are in test_sketch_laws.py."""

import hashlib

import numpy as np
import pytest

from sfm_stream.errors import IncompatibleError, UsageError
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally

SHAPE = SketchShape(16, 2)
K = 1 << 62


def sketch(text, k=K, name="xxh64", shape=SHAPE):
    return SfmSketch(shape, k, name, bytes.fromhex(text))


def test_counts_are_ones_per_cell():
    tally = Tally.of([sketch("01000000"), sketch("03000080"), sketch("01000000")])
    assert tally.releases == 3
    assert tally.counts.dtype == np.int32
    assert tally.counts[0].tolist() == [3, 1] + [0] * 14
    assert tally.counts[1].tolist() == [0] * 15 + [1]


def test_histogram_counts_cells_by_count():
    tally = Tally.of([sketch("01000000"), sketch("03000080"), sketch("01000000")])
    assert tally.histogram().tolist() == [[14, 1, 0, 1], [15, 1, 0, 0]]
    assert tally.histogram().sum(axis=1).tolist() == [16, 16]


def test_a_single_release_is_a_tally_of_one():
    tally = Tally.of(iter([sketch("0f0f0000")]))
    assert (tally.counts == sketch("0f0f0000").cells()).all()


def test_counts_are_read_only_and_the_tally_frozen():
    tally = Tally.of([sketch("01000000")])
    with pytest.raises(ValueError, match="read-only"):
        tally.counts[0, 0] = 0
    with pytest.raises(AttributeError):
        tally.releases = 2
    with pytest.raises(TypeError):
        hash(tally)


def test_of_does_not_touch_its_sketches():
    only = sketch("01000000")
    Tally.of([only, only])
    assert only == sketch("01000000")


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        (sketch("00000000", shape=SketchShape(16, 2), k=5), "flip probability k differs"),
        (sketch("00000000", name="other"), "hash differs"),
        (sketch("00" * 8, shape=SketchShape(32, 2)), "shape differs"),
        (sketch("00" * 6, shape=SketchShape(16, 3)), "shape differs"),
    ],
    ids=["k", "hash", "buckets", "levels"],
)
def test_differences_are_named(other, problem):
    mine = sketch("00000000")
    with pytest.raises(IncompatibleError, match=f"^tally: {problem}, .+ against .+"):
        Tally.of([mine, mine, other])
    with pytest.raises(IncompatibleError, match=f"^tally: {problem}, .+ against .+"):
        Tally.of([mine]) + Tally.of([other])


def test_no_sketches():
    with pytest.raises(UsageError, match="no sketches"):
        Tally.of([])


@pytest.mark.parametrize(
    ("releases", "counts", "problem"),
    [
        (0, np.zeros((2, 16), np.int32), "at least one release"),
        (1, np.zeros((16, 2), np.int32), "do not fit"),
        (1, np.zeros(32, np.int32), "do not fit"),
        (1, np.full((2, 16), 2, np.int32), "outside"),
        (1, np.full((2, 16), -1, np.int32), "outside"),
    ],
)
def test_a_tally_is_validated(releases, counts, problem):
    with pytest.raises(UsageError, match=problem):
        Tally(SHAPE, K, "xxh64", releases, counts)


def test_equality_sees_every_field():
    base = Tally.of([sketch("01000000")])
    assert base == Tally.of([sketch("01000000")])
    others = [
        Tally.of([sketch("03000000")]),
        Tally.of([sketch("01000000", k=5)]),
        Tally.of([sketch("01000000", name="other")]),
        Tally.of([sketch("01000000"), sketch("00000000")]),
        Tally.of([sketch("0100000000000000", shape=SketchShape(32, 2))]),
    ]
    assert all(base != other for other in others)
    assert base != 1


def test_digest_is_sha_256_of_everything():
    tally = Tally.of([sketch("01000000"), sketch("03000080")])
    counts = b"".join(int(count).to_bytes(4, "little") for count in tally.counts.reshape(-1))
    assert tally.digest() == hashlib.sha256(f"16x2 {K} xxh64 2\n".encode() + counts).digest()


def test_only_tallies_add():
    with pytest.raises(TypeError):
        Tally.of([sketch("01000000")]) + sketch("01000000")
    with pytest.raises(TypeError):
        sum([Tally.of([sketch("01000000")])])
