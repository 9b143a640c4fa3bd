"""Presto's bytes and counts: golden figures, the naive reader as oracle, and every refusal by name."""

import hashlib
import json
import struct
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from reference import presto_reader as oracle

from sfm_stream.errors import FormatError, UsageError
from sfm_stream.privacy.epsilon import epsilon_of, flip_threshold_of
from sfm_stream.sketch.hashing import keyed_blake2b
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.wire import presto

GOLDEN = Path(__file__).parents[2] / "golden"
FIGURES = json.loads((GOLDEN / "presto.json").read_text())
SMALL = SketchShape(16, 2)


def head(tag=7, n=4, levels=2, p=0.25, length=0):
    return struct.pack("<biidi", tag, n, levels, p, length)


def sketch_of(shape, k, seed=1):
    bits = np.random.default_rng(seed).integers(0, 256, shape.nbytes, np.uint8).tobytes()
    return SfmSketch(shape, k, "xxh64", bits)


def raw_blob(raw):
    """The raw bytes Presto would write, built here because the package has no way to."""
    lit = frozenset(np.flatnonzero(np.unpackbits(raw.bits, bitorder="little")).tolist())
    return oracle.write(oracle.Blob(raw.shape.bucket_bits, raw.shape.levels, 0.0, lit))


# Golden figures


@pytest.mark.parametrize("golden", FIGURES["blobs"], ids=lambda golden: golden["file"])
def test_golden_raw_blobs_are_read_bit_for_bit(golden):
    blob = (GOLDEN / golden["file"]).read_bytes()
    assert len(blob) == golden["bytes"]
    assert hashlib.sha256(blob).hexdigest() == golden["sha256"]
    raw = presto.read_raw(blob)
    assert type(raw) is PcsaSketch
    assert raw.shape == SketchShape(golden["buckets"], golden["levels"])
    assert np.flatnonzero(np.unpackbits(raw.bits, bitorder="little")).tolist() == golden["bits"]
    assert raw_blob(raw) == blob


def test_bigints_1_2_3_make_the_golden_bytes():
    raw = PcsaSketch(SketchShape(512, 8)).add([1, 2, 3])
    assert raw_blob(raw) == (GOLDEN / "presto-bigint-1-2-3-512x8.bin").read_bytes()


def test_the_empty_sketch_is_21_bytes_and_counts_0():
    blob = raw_blob(PcsaSketch(SketchShape(4096, 24)))
    assert blob == bytes.fromhex("070c000000180000000000000000000000" + "00000000")
    assert len(blob) == 21
    assert presto.presto_cardinality(np.zeros(12288, np.uint8), SketchShape(4096, 24), 0.0) == 0


def test_golden_private_blob_both_ways():
    blob = (GOLDEN / "presto-private-16x22.bin").read_bytes()
    sketch = presto.decode(blob)
    assert sketch.shape == SketchShape(16, 22)
    assert (sketch.flip_threshold, sketch.hash) == (int(0.2689414213699951 * 2**64), "xxh64")
    lit = set(np.flatnonzero(sketch.cells()).tolist())
    assert lit == set(range(1, 352, 7)) | {351}
    assert presto.encode(sketch) == blob


@pytest.mark.parametrize("golden", FIGURES["counts_of_1_to_99999"], ids=str)
def test_golden_counts(golden):
    numbers = np.arange(1, 100_000)
    items = numbers if golden["type"] == "BIGINT" else [str(number) for number in numbers]
    raw = PcsaSketch(SketchShape(golden["buckets"], golden["levels"])).add(items)
    assert presto.presto_cardinality(raw.bits, raw.shape, 0.0) == golden["count"]


def test_the_naive_estimator_gives_a_golden_count_too():
    raw = PcsaSketch(SketchShape(4096, 24)).add(np.arange(1, 100_000))
    assert oracle.cardinality(oracle.read(raw_blob(raw))) == 99466


# Both ways


@pytest.mark.parametrize(
    ("shape", "epsilon"),
    [(SMALL, 2**-10), (SMALL, 0.5), (SMALL, 16), (SketchShape(512, 8), 1), (SketchShape(65536, 48), 4)],
    ids=str,
)
def test_what_we_write_the_naive_reader_reads(shape, epsilon):
    k = flip_threshold_of(epsilon)
    sketch = sketch_of(shape, k)
    read = oracle.read(presto.encode(sketch))
    assert (read.index_bits, read.levels) == (shape.bucket_bits, shape.levels)
    assert read.bits == frozenset(np.flatnonzero(sketch.cells()).tolist())
    below = Fraction(k, GRID) - Fraction(read.p)
    assert 0 <= below < Fraction(k, GRID) / 2**52


@pytest.mark.parametrize("k", [1, 2, 2**53 - 1, 2**53 + 1, 2**54 + 3, 2**62 + 1, 2**63 - 1])
def test_a_round_trip_clears_all_but_the_leading_53_bits_of_k(k):
    sketch = sketch_of(SMALL, k)
    back = presto.decode(presto.encode(sketch))
    kept = k & ~((1 << max(0, k.bit_length() - 53)) - 1)
    assert back == SfmSketch(SMALL, kept, "xxh64", sketch.bits)
    assert presto.encode(back) == presto.encode(sketch)
    assert epsilon_of(back.flip_threshold) >= epsilon_of(k)


@pytest.mark.parametrize("p", [2.0**-64, 3e-19, 1.1253516205509499e-07, 0.00012339457598623172, 0.2689414213699951])
def test_k_is_the_floor_of_p_on_the_grid(p):
    assert presto.decode(head(p=p)).flip_threshold == Fraction(p) * GRID // 1


def test_trailing_zero_bytes_are_dropped_and_restored():
    sketch = SfmSketch(SketchShape(16, 4), GRID // 4, "xxh64", b"\x00\x08" + bytes(6))
    blob = presto.encode(sketch)
    assert blob == head(n=4, levels=4, length=2) + b"\x00\x08"
    assert presto.decode(blob) == sketch


def test_the_caller_names_the_hash():
    name = keyed_blake2b(bytes(16)).name
    assert presto.decode(head(), hash=name).hash == name
    assert presto.read_raw(head(p=0.0), keyed_blake2b(bytes(16))).hash.name == name


def test_pure_noise_is_not_written():
    with pytest.raises(FormatError, match=r"^flip probability: 0\.5 "):
        presto.encode(SfmSketch(SMALL, GRID // 2, "xxh64", bytes(SMALL.nbytes)))


def test_a_raw_sketch_has_no_way_out():
    with pytest.raises(TypeError, match="PcsaSketch"):
        presto.encode(PcsaSketch(SMALL))
    assert not [name for name in vars(presto) if "raw" in name.lower() and name != "read_raw"]


# Refusals

REFUSED = [
    ("length", b""),
    ("length", head()[:-1]),
    ("length", head() + b"\x01"),
    ("length", head(length=2) + b"\x01"),
    ("tag", head(tag=6)),
    ("tag", head(tag=-7)),
    ("index bits", head(n=0)),
    ("index bits", head(n=-1)),
    ("index bits", head(n=33)),
    ("levels", head(levels=0)),
    ("levels", head(levels=-1)),
    ("levels", head(n=16, levels=49)),
    ("levels", head(n=32, levels=33)),
    ("flip probability", head(p=0.5)),
    ("flip probability", head(p=0.7)),
    ("flip probability", head(p=-0.1)),
    ("flip probability", head(p=-0.0)),
    ("flip probability", head(p=float("nan"))),
    ("flip probability", head(p=float("inf"))),
    ("flip probability", head(p=float("-inf"))),
    ("bitmap length", head(length=-1)),
    ("bitmap length", head(length=5) + b"\x01" * 5),
    ("bitmap", head(length=1) + b"\x00"),
    ("bitmap", head(length=2) + b"\x01\x00"),
    ("bitmap", head(n=1, levels=3, length=1) + b"\x40"),
    ("shape", head(n=1, levels=3, length=1) + b"\x20"),
    ("shape", head(n=3)),
    ("shape", head(n=17)),
    ("shape", head(n=32, levels=32)),
    ("shape", head(levels=1)),
    ("shape", head(levels=49)),
]


@pytest.mark.parametrize(("field", "blob"), REFUSED, ids=lambda value: value if isinstance(value, str) else None)
@pytest.mark.parametrize("reader", [presto.decode, presto.read_raw])
def test_refusals_name_their_field(reader, field, blob):
    with pytest.raises(FormatError) as caught:
        reader(blob)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "blob", [None, 7, "", head().decode("latin-1"), bytearray(head()), memoryview(head())], ids=type
)
@pytest.mark.parametrize("reader", [presto.decode, presto.read_raw])
def test_only_bytes_are_read(reader, blob):
    with pytest.raises(FormatError) as caught:
        reader(blob)
    assert caught.value.field == "blob"


@pytest.mark.parametrize("p", [0.0, 5e-324, 2.0**-65, float(np.nextafter(2.0**-64, 0))])
def test_a_raw_or_sub_grid_probability_is_not_private(p):
    with pytest.raises(FormatError) as caught:
        presto.decode(head(p=p))
    assert caught.value.field == "flip probability"


@pytest.mark.parametrize("p", [5e-324, 0.25])
def test_read_raw_refuses_a_private_sketch(p):
    with pytest.raises(FormatError) as caught:
        presto.read_raw(head(p=p))
    assert caught.value.field == "flip probability"


def test_an_unsupported_shape_says_so():
    with pytest.raises(FormatError, match=r"^shape: valid for Presto, not supported here: buckets: 131072 is outside"):
        presto.decode(head(n=17))


# Estimator


@pytest.mark.parametrize("k", [1, 2**53 + 1, 2**62 + 1, 2**63 - 1, 2**63])
def test_the_probability_is_that_of_the_bytes_and_never_above_k(k):
    p = presto.probability(k)
    assert 0 <= Fraction(k, GRID) - Fraction(p) < Fraction(k, GRID) / 2**52
    if k < GRID // 2:
        assert oracle.read(presto.encode(sketch_of(SMALL, k))).p == p


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4, 8])
@pytest.mark.parametrize("shape", [SketchShape(64, 8), SketchShape(256, 24)], ids=str)
@pytest.mark.parametrize("items", [0, 1, 30, 3_000, 300_000])
def test_counts_equal_the_naive_estimator(shape, epsilon, items):
    k = flip_threshold_of(epsilon)
    coins = np.random.default_rng(items).random(shape.cells) < k / GRID
    raw = PcsaSketch(shape).add(np.arange(items))
    noisy = SfmSketch(shape, k, "xxh64", (raw.bits ^ np.packbits(coins, bitorder="little")).tobytes())
    assert presto.cardinality(noisy) == oracle.cardinality(oracle.read(presto.encode(noisy)))
    assert presto.presto_cardinality(raw.bits, shape, 0.0) == oracle.cardinality(oracle.read(raw_blob(raw)))


def assert_counts_alike(ones, p):
    lit = frozenset(level * 16 + bucket for level, count in enumerate(ones) for bucket in range(count))
    bits = np.packbits([cell in lit for cell in range(32)], bitorder="little")
    count = presto.presto_cardinality(bits, SMALL, p)
    assert count == oracle.cardinality(oracle.Blob(4, 2, p, lit))
    return count


@pytest.mark.parametrize("p", [0.0, 1e-9, 0.1, 0.4999])
@pytest.mark.parametrize("ones", [(0, 0), (16, 16), (16, 0), (0, 16), (8, 4), (1, 0), (15, 16)])
def test_odd_bitmaps_count_as_in_the_naive_estimator(ones, p):
    assert_counts_alike(ones, p)


@pytest.mark.parametrize(
    ("ones", "p", "count"),
    [
        pytest.param((3, 2), 0.01897, 6, id="smaller steps would give 7"),
        pytest.param((9, 4), 0.215142, 19, id="smaller steps would give 20"),
        pytest.param((6, 4), 0.091848, 14, id="stopping at 0.2 would give 13"),
        pytest.param((0, 7), 0.45, 2217, id="900 rounds would give 2184, 1001 would give 2146"),
        pytest.param((6, 11), 0.4, 46, id="1001 rounds would give 71"),
    ],
)
def test_where_newton_stops(ones, p, count):
    assert assert_counts_alike(ones, p) == count


@pytest.mark.parametrize(("nbytes", "p"), [(3, 0.1), (5, 0.1), (4, 0.5), (4, -0.1), (4, float("nan"))], ids=str)
def test_the_estimator_refuses_what_is_no_sketch(nbytes, p):
    with pytest.raises(UsageError):
        presto.presto_cardinality(np.zeros(nbytes, np.uint8), SMALL, p)
