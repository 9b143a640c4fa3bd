"""The strict reader under attack: a FormatError, or a record that encodes to exactly the bytes that were read."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_wire import FIELDS, read
from reference.wire_samples import (
    START_MS,
    altered,
    bare,
    counted_release,
    marker,
    raw_fields,
    release,
    rollup,
    sized_rollup,
    span_marker,
    u64,
)

from sfm_stream.errors import FormatError
from sfm_stream.readable import duration
from sfm_stream.sketch.sfm import NoisyCount
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.window_sizes import WindowSizes
from sfm_stream.types import Window
from sfm_stream.wire.codec import Release, RollupRecord, WireRecord, decode, decode_rollup, encode
from sfm_stream.wire.keys import decode_key, encode_key

SHAPE = SketchShape(16, 2)
V1 = {"release": encode(release(SHAPE)), "marker": encode(marker()), "rollup": encode(rollup(SHAPE))}
V2 = {
    "release": encode(counted_release(SHAPE)),
    "marker": encode(span_marker()),
    "rollup": encode(sized_rollup(SHAPE)),
}
V3 = {"rollup": encode(bare(sized_rollup(SHAPE)))}
SAMPLES = {f"{kind} {version}": data for version, kinds in ((1, V1), (2, V2), (3, V3)) for kind, data in kinds.items()}
KINDS = pytest.mark.parametrize("kind", SAMPLES)

parts = st.one_of(st.text(max_size=40), st.integers(-(1 << 63), (1 << 63) - 1), st.binary(max_size=40))
keys = st.lists(parts, max_size=4).map(tuple)
shapes = st.builds(SketchShape, st.sampled_from([16, 32, 256]), st.integers(2, 9))
seeds = st.text(max_size=4)
count_epsilons = st.sampled_from([None, Decimal("0.1"), Decimal("0.0625"), Decimal(2)])
figures = st.floats(min_value=0.0, allow_nan=False)
junk = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(1 << 63), (1 << 64) - 1),
        st.floats(),
        st.text(max_size=8),
        st.binary(max_size=8),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=20), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=20,
)


@st.composite
def releases(draw: st.DrawFn) -> Release:
    start = draw(st.integers(0, (1 << 62)))
    return replace(
        release(draw(shapes), draw(keys), draw(seeds)),
        epoch=draw(st.integers(1, (1 << 31) - 1)),
        partition=draw(st.integers(0, 11)),
        window=Window(start, start + draw(st.integers(1, 1 << 62))),
        unit=draw(st.sampled_from(["removed", "blanked"])),
    )


@st.composite
def counted_releases(draw: st.DrawFn) -> Release:
    """Version 2: any noisy count, or none, and any span that names its own length."""
    numbers = st.integers(-(1 << 63), (1 << 63) - 1)
    epsilons = st.decimals(Decimal("0.0009765625"), 16, allow_nan=False, places=draw(st.integers(0, 50)))
    record, size = draw(releases()), draw(st.sampled_from([1, 1000, 60_000, 1_800_000, 3_600_000]))
    count = draw(st.none() | st.builds(NoisyCount, numbers, epsilons))
    start = record.window.start_ms - record.window.start_ms % 3_600_000
    span = draw(st.sampled_from(["1h", "hour"])) if size == 3_600_000 else duration(size)
    return replace(record, window=Window(start, start + size), sketch=replace(record.sketch, count=count), span=span)


@st.composite
def rollups(draw: st.DrawFn, version: int) -> RollupRecord:
    low, value, high = sorted(draw(st.tuples(figures, figures, figures)))
    return replace(
        rollup(draw(shapes), draw(keys), draw(st.integers(1, 2000)), draw(seeds))
        if version == 1
        else sized_rollup(draw(shapes), draw(keys), draw(st.integers(1, 40)), draw(seeds), draw(count_epsilons)),
        complete=draw(st.booleans()),
        decided=draw(st.integers(0, 60)),
        revision=draw(st.integers(1, (1 << 63) - 1)),
        value=value,
        standard_error=draw(figures),
        low=low,
        high=high,
        confidence=draw(st.floats(0, 1, exclude_min=True, exclude_max=True)),
        status=draw(st.sampled_from(["ok", "empty", "saturated", "uninformative"])),
    )


def holds(data: bytes) -> WireRecord | None:
    """None where the bytes are refused. Whatever else decode does, this lets it through and the test fails."""
    try:
        record = decode(data)
    except FormatError as error:
        assert error.field  # noqa: PT017 -- most bytes are refused, not all
        assert error.problem  # noqa: PT017 -- the same
        return None
    assert encode(record) == data
    return record


def same(one: WireRecord, other: WireRecord) -> bool:
    """Equal, and in what the releases of a tally say too, which does not make tallies differ."""
    if isinstance(one, RollupRecord) and isinstance(other, RollupRecord):
        sizes = [None if record.tally is None else record.tally.sizes for record in (one, other)]
        return one == other and sizes[0] == sizes[1]
    return one == other


@given(st.one_of(releases(), counted_releases(), rollups(1), rollups(2), rollups(1).map(bare), rollups(2).map(bare)))
@settings(max_examples=100)
def test_round_trip(record: Release | RollupRecord) -> None:
    data = encode(record)
    assert decode(data) == record
    assert encode(decode(data)) == data
    naive = read(data)
    assert tuple(naive["key"]) == decode_key(record.key)  # type: ignore[arg-type]
    if isinstance(record, Release) and record.sketch.count is not None:
        assert (naive["count"], naive["count_epsilon"]) == (record.sketch.count.value, record.sketch.count.epsilon)
    if isinstance(record, RollupRecord) and record.tally is None:
        assert (naive["version"], naive["k"], naive["hash"]) == (3, record.of_releases.flip_threshold, "xxh64")
        assert (naive["origin"], naive["span"]) == (record.origin or "", record.span or "")
    elif isinstance(record, RollupRecord) and record.span is not None:
        read_sizes = decode_rollup(data).tally.sizes
        assert read_sizes == record.tally.sizes
        assert read_sizes is not None
        assert naive["ones"] == read_sizes.ones.tolist()
        assert naive["counts"] == [count.value for count in read_sizes.counts if count is not None]


@KINDS
def test_every_mutation_of_every_byte(kind: str) -> None:
    data = SAMPLES[kind]
    original = decode(data)
    for at in range(len(data)):
        for value in {data[at] ^ (1 << bit) for bit in range(8)} | {0x00, 0x80, 0x90, 0xC0, 0xC3, 0xCF, 0xD9, 0xFF}:
            changed = data[:at] + bytes([value]) + data[at + 1 :]
            record = holds(changed)
            assert record is None or same(record, original) == (changed == data)


@KINDS
def test_every_truncation_and_extension(kind: str) -> None:
    data = SAMPLES[kind]
    for length in range(len(data)):
        assert holds(data[:length]) is None
        assert holds(data[length + 1 :]) is None
    for value in range(256):
        assert holds(data + bytes([value])) is None
        assert holds(bytes([value]) + data) is None


@KINDS
def test_every_byte_removed_or_doubled(kind: str) -> None:
    data = SAMPLES[kind]
    for at in range(len(data)):
        holds(data[:at] + data[at + 1 :])
        holds(data[:at] + data[at : at + 1] + data[at:])


@given(st.binary(max_size=300))
@settings(max_examples=200)
def test_random_bytes(data: bytes) -> None:
    assert holds(data) is None
    holds(b"\xdc\x00\x10" + u64(1) + u64(1) + data)
    holds(b"\xdc\x00\x1e" + u64(1) + u64(3) + data)
    holds(b"\xdc\x00\x13" + u64(2) + u64(1) + data)
    holds(b"\xdc\x00\x23" + u64(2) + u64(3) + data)
    holds(b"\xdc\x00\x1e" + u64(3) + u64(3) + data)


@given(junk)
@settings(max_examples=200)
def test_random_msgpack(value: object) -> None:
    assert holds(msgpack.packb(value)) is None


@given(st.data())
@settings(max_examples=200)
def test_one_field_is_any_msgpack(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(SAMPLES)))
    field = data.draw(st.sampled_from(sorted(raw_fields(SAMPLES[kind]))))
    raw = data.draw(st.one_of(junk.map(msgpack.packb), st.integers(0, (1 << 64) - 1).map(u64), st.binary(max_size=12)))
    holds(altered(SAMPLES[kind], **{field: raw}))


@given(st.data())
@settings(max_examples=200)
def test_fields_in_any_order_and_number(data: st.DataObject) -> None:
    raw = raw_fields(SAMPLES[data.draw(st.sampled_from(sorted(SAMPLES)))])
    chosen = data.draw(st.lists(st.sampled_from(sorted(raw)), max_size=32))
    header = b"\xdc" + len(chosen).to_bytes(2, "big")
    holds(header + b"".join(raw[name] for name in chosen))


def length_up_to_the_key(data: bytes) -> int:
    raw = raw_fields(data)
    raw.pop("key", None)
    return sum(map(len, raw.values()))


@given(st.lists(st.tuples(keys, seeds, st.integers(0, 1 << 40), st.integers(0, 11)), min_size=2, max_size=2))
@settings(max_examples=100)
def test_a_length_says_nothing_but_the_key(contents: list[tuple[tuple[int, ...], str, int, int]]) -> None:
    sizes = set()
    for key, seed, start, partition in contents:
        record = replace(release(SHAPE, key, seed), window=Window(start, start + 60_000), partition=partition)
        data = encode(record)
        sizes.add((length_up_to_the_key(data), len(data) - len(encode_key(key))))
    assert len(sizes) == 1


@given(rollups(2), st.sampled_from(["ok", "empty", "saturated", "uninformative"]), st.integers(1, 60), keys)
@settings(max_examples=60)
def test_neither_estimate_nor_releases_change_the_length_of_a_rollup_of_version_3(
    record: RollupRecord, status: str, released: int, key: tuple[int, ...]
) -> None:
    base = bare(sized_rollup(record.of_releases.shape, key, released, count_epsilon=record.count_epsilon))
    assert length_up_to_the_key(encode(bare(record))) == length_up_to_the_key(encode(replace(base, status=status)))


@given(rollups(1), st.sampled_from(["ok", "empty", "saturated", "uninformative"]), seeds, keys)
@settings(max_examples=60)
def test_an_estimate_does_not_change_the_length_of_a_rollup(
    record: RollupRecord, status: str, seed: str, key: tuple[int, ...]
) -> None:
    base = rollup(record.tally.shape, key, record.released, seed)
    assert length_up_to_the_key(encode(record)) == length_up_to_the_key(encode(replace(base, status=status)))


@given(st.integers(-(1 << 63), (1 << 63) - 1), seeds)
@settings(max_examples=60)
def test_a_noisy_count_does_not_change_the_length_of_a_release_or_a_rollup(value: int, seed: str) -> None:
    epsilon = Decimal("0.25")
    other = encode(counted_release(SHAPE, seed=seed, count=NoisyCount(value, epsilon)))
    assert len(other) == len(V2["release"])
    record = sized_rollup(SHAPE, seed=seed)
    assert record.tally.sizes is not None
    counts = (NoisyCount(value, epsilon), *record.tally.sizes.counts[1:])
    sizes = WindowSizes(record.tally.sizes.ones, counts)
    assert len(encode(replace(record, tally=replace(record.tally, sizes=sizes)))) == len(V2["rollup"])


def test_markers_of_one_configuration_have_one_length() -> None:
    lengths = {len(encode(replace(marker(), through_ms=START_MS + 60_000 * n))) for n in (1, 5, 1 << 20)}
    assert len(lengths) == 1


def test_the_samples_have_every_field() -> None:
    for version, samples in ((1, V1), (2, V2)):
        for number, data in enumerate(samples.values(), 1):
            assert list(raw_fields(data))[1:] == FIELDS[version][number].split()
    assert list(raw_fields(V3["rollup"]))[1:] == FIELDS[3][3].split()
