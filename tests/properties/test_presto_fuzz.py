"""The strict reader under damage: a FormatError or a sketch that writes the same bytes again, nothing else.

The naive reader decides which of the two it must be, so that accepting too much and refusing too much both fail.
"""

import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import presto_reader as oracle

from sfm_stream.errors import FormatError
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.wire import presto

FEW, MANY = settings(max_examples=200), settings(max_examples=500)


def expected(blob):
    """The parsed fields if this package must accept the blob, else None."""
    try:
        read = oracle.read(blob)
    except ValueError:
        return None
    return read if 4 <= read.index_bits <= 16 and 2 <= read.levels <= 48 else None


def check(blob):
    read = expected(blob)
    if read is None or read.p == 0 or Fraction(read.p) * GRID < 1:
        refused(presto.decode, blob)
    else:
        sketch = presto.decode(blob)
        assert type(sketch) is SfmSketch
        on_grid = float(Fraction(Fraction(read.p) * GRID // 1, GRID))
        # Equal bytes, but for a p < 2^-12 with digits below the grid of k, which are cleared.
        assert presto.encode(sketch) == blob[:9] + struct.pack("<d", on_grid) + blob[17:]
        assert on_grid == read.p or read.p < 2.0**-12
    if read is None or read.p != 0:
        refused(presto.read_raw, blob)
    else:
        raw = presto.read_raw(blob)
        assert type(raw) is PcsaSketch
        lit = np.flatnonzero(np.unpackbits(raw.bits, bitorder="little")).tolist()
        assert oracle.write(oracle.Blob(read.index_bits, read.levels, 0.0, frozenset(lit))) == blob


def refused(reader, blob):
    with pytest.raises(FormatError) as caught:
        reader(blob)
    assert caught.value.field
    assert caught.value.problem


@st.composite
def sketches(draw):
    shape = SketchShape(draw(st.sampled_from([16, 32, 256])), draw(st.integers(2, 48)))
    k = draw(st.one_of(st.integers(1, GRID // 2 - 1), st.integers(0, 62).map(lambda power: 1 << power)))
    bits = draw(st.binary(max_size=shape.nbytes)).ljust(shape.nbytes, b"\0")
    return SfmSketch(shape, k, "xxh64", bits)


blobs = st.one_of(sketches().map(presto.encode), sketches().map(lambda s: with_p(presto.encode(s), 0.0)))


def with_p(blob, p):
    return blob[:9] + struct.pack("<d", p) + blob[17:]


@FEW
@given(sketches())
def test_round_trip(sketch):
    blob = presto.encode(sketch)
    check(blob)
    back = presto.decode(blob)
    assert (back.shape, back.hash, back.bits) == (sketch.shape, sketch.hash, sketch.bits)
    assert 0 <= sketch.flip_threshold - back.flip_threshold < max(1, sketch.flip_threshold >> 52)


@settings(max_examples=100)
@given(
    levels=st.integers(2, 8),
    p=st.one_of(st.just(0.0), st.floats(2.0**-64, 0.5, exclude_max=True)),
    ones=st.binary(min_size=16, max_size=16),
)
def test_counts_of_any_bitmap_are_those_of_the_naive_estimator(levels, p, ones):
    """Bit for bit, raw and private, with the runaways: a count that differs by one is another estimator."""
    shape = SketchShape(16, levels)
    bits = np.frombuffer(ones[: shape.nbytes], np.uint8)
    lit = frozenset(np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist())
    assert presto.presto_cardinality(bits, shape, p) == oracle.cardinality(oracle.Blob(4, levels, p, lit))


def test_every_value_of_every_byte():
    for p in (0.0, 0.25, 1e-5):
        blob = struct.pack("<biidi", 7, 4, 2, p, 4) + b"\x01\x80\x00\x10"
        for place in range(len(blob)):
            for value in range(256):
                check(blob[:place] + bytes([value]) + blob[place + 1 :])


@MANY
@given(blobs, st.data())
def test_mutations(blob, data):
    changed = bytearray(blob)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(blob) - 1))] = data.draw(st.integers(0, 255))
    check(bytes(changed))


@FEW
@given(blobs, st.data())
def test_truncations_and_extensions(blob, data):
    check(blob[: data.draw(st.integers(0, len(blob)))])
    check(blob + data.draw(st.binary(min_size=1, max_size=8)))
    check(data.draw(st.binary(min_size=1, max_size=8)) + blob)


def test_every_truncation():
    blob = presto.encode(SfmSketch(SketchShape(16, 48), 1 << 62, "xxh64", bytes(range(96))))
    for length in range(len(blob)):
        refused(presto.decode, blob[:length])


@MANY
@given(st.binary(max_size=64))
@example(b"\x07" + bytes(20))
def test_random_bytes(blob):
    check(blob)


@MANY
@given(
    tag=st.sampled_from([7, 7, 7, 6, -1]),
    n=st.one_of(st.integers(-1, 34), st.integers(-(2**31), 2**31 - 1)),
    levels=st.one_of(st.integers(-1, 65), st.integers(-(2**31), 2**31 - 1)),
    p=st.one_of(st.floats(), st.floats(0, 0.5)),
    bitmap=st.binary(max_size=40),
    off=st.sampled_from([0, 0, 0, 1, -1, 2**31 - 50]),
)
def test_well_cut_headers(tag, n, levels, p, bitmap, off):
    check(struct.pack("<biidi", tag, n, levels, p, max(-1, len(bitmap) + off)) + bitmap)
