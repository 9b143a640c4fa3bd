"""Releases by their form: the same bytes as `encode`, and of any bytes the same verdict as `decode`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.test_codec_fuzz import counted_releases, keys, releases
from reference.wire_samples import bits, counted_release, release

from sfm_stream.errors import FormatError, StateError, UsageError
from sfm_stream.pipeline.outbox_record import OutboxRecords, RunRelease
from sfm_stream.sketch.sfm import NoisyCount
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import Window
from sfm_stream.wire.codec import Release, decode, encode
from sfm_stream.wire.keys import encode_key
from sfm_stream.wire.release_form import ReleaseForm

SHAPE = SketchShape(16, 2)
SAMPLES = {
    "1": release(SHAPE),
    "2": counted_release(SHAPE),
    "2 without count": counted_release(SHAPE, count=None),
}
KINDS = pytest.mark.parametrize("kind", SAMPLES)
EDGES = {0x00, 0x80, 0x90, 0x91, 0xA0, 0xC0, 0xC3, 0xC4, 0xC6, 0xCF, 0xD3, 0xD9, 0xFF}


def another(like: Release, key: tuple[object, ...] | str, seed: str, count: int) -> Release:
    """A release of the same form."""
    of_like = like.sketch.count
    counted = None if of_like is None else NoisyCount(count, of_like.epsilon)
    sketch = replace(like.sketch, bits=bits(like.sketch.shape, seed), count=counted)
    return replace(like, key=encode_key(key), sketch=sketch)  # type: ignore[arg-type]


def expected(like: Release, payload: bytes) -> tuple[bytes, bytes] | None:
    """What a form has to say of these bytes, field by field."""
    try:
        record = decode(payload)
    except FormatError:
        return None
    alike = isinstance(record, Release) and in_common(record) == in_common(like)
    return (record.release_id, record.key) if isinstance(record, Release) and alike else None


def in_common(record: Release) -> tuple[object, ...]:
    """All of a release but key, bits, and the value of its count."""
    sketch = record.sketch
    source = (
        record.pipeline,
        record.epoch,
        record.partition,
        record.partitions,
        record.window,
        record.unit,
        record.span,
    )
    return *source, sketch.shape, sketch.flip_threshold, sketch.hash, sketch.count and sketch.count.epsilon


def value_of(release: Release) -> int | None:
    return None if release.sketch.count is None else release.sketch.count.value


def changed(data: bytes) -> Iterator[bytes]:
    """Every byte changed in every bit and to what means something in msgpack, cut, removed or doubled."""
    for at in range(len(data)):
        for value in {data[at] ^ (1 << bit) for bit in range(8)} | EDGES:
            yield data[:at] + bytes([value]) + data[at + 1 :]
        yield data[:at]
        yield data[at + 1 :]
        yield data[:at] + data[at + 1 :]
        yield data[:at] + data[at : at + 1] + data[at:]
    for value in range(256):
        yield data + bytes([value])
        yield bytes([value]) + data


@given(st.one_of(releases(), counted_releases()), keys, st.text(max_size=4), st.integers(-(1 << 63), (1 << 63) - 1))
@settings(max_examples=100)
def test_what_is_written_by_a_form_is_what_encode_writes(
    like: Release, key: tuple[object, ...], seed: str, count: int
) -> None:
    form, record = ReleaseForm(like), another(like, key, seed, count)
    assert form.write(record.key, record.sketch.bits, value_of(record)) == encode(record)
    assert form.write(like.key, like.sketch.bits, value_of(like)) == encode(like)
    assert form.read(encode(record)) == (record.release_id, record.key)


@KINDS
def test_of_every_change_a_form_says_what_decode_says(kind: str) -> None:
    like = SAMPLES[kind]
    form, taken = ReleaseForm(like), 0
    for data in changed(encode(another(like, "/other", "other", -7))):
        assert form.read(data) == expected(like, data)
        taken += form.read(data) is not None
    assert taken > 8 * SHAPE.nbytes, "bits may have any value"


@given(st.one_of(releases(), counted_releases()), st.one_of(releases(), counted_releases()))
@settings(max_examples=100)
def test_a_release_of_another_form_is_none_of_this_one(one: Release, other: Release) -> None:
    assert ReleaseForm(one).read(encode(other)) == expected(one, encode(other))


@KINDS
def test_each_field_makes_a_form_of_its_own(kind: str) -> None:
    like = SAMPLES[kind]
    window, sketch = like.window, like.sketch
    hour = window.start_ms - 3_600_000
    others = [
        replace(like, pipeline="visitt"),
        replace(like, epoch=2),
        replace(like, partition=4),
        replace(like, partitions=13),
        replace(like, window=Window(hour, hour + window.end_ms - window.start_ms)),
        replace(like, unit="blanked"),
        replace(like, sketch=replace(sketch, flip_threshold=sketch.flip_threshold + 1)),
        replace(like, sketch=replace(sketch, hash="xxh65")),
        replace(like, sketch=replace(sketch, shape=SketchShape(32, 2), bits=bits(SketchShape(32, 2), "sketch"))),
    ]
    if sketch.count is not None:
        others.append(replace(like, sketch=replace(sketch, count=NoisyCount(1, Decimal("0.26")))))
    form = ReleaseForm(like)
    for other in others:
        assert form.read(encode(other)) is None


@KINDS
@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"\x90\x00",
        b"\x91\xd9\x01a",
        b"\x91\xc3",
        b"\x91\x91\x01",
        b"\x81\x01\x01",
        b"\xdc\x00\x00",
        b"\x91\xa1\xff",
    ],
)
def test_a_key_that_is_not_canonical_is_none_though_its_id_fits(kind: str, key: bytes) -> None:
    form, like = ReleaseForm(SAMPLES[kind]), SAMPLES[kind]
    payload = form.write(key, like.sketch.bits, value_of(like))
    assert form.read(payload) is None
    with pytest.raises(FormatError):
        decode(payload)


def test_bits_and_counts_of_another_form_are_not_written() -> None:
    counted, plain = ReleaseForm(SAMPLES["2"]), ReleaseForm(SAMPLES["2 without count"])
    key, right, count = SAMPLES["2"].key, SAMPLES["2"].sketch.bits, value_of(SAMPLES["2"])
    for form, some_bits, some_count in ((counted, right, None), (plain, right, count), (counted, right[1:], count)):
        with pytest.raises(UsageError, match="another form"):
            form.write(key, some_bits, some_count)


# What the publisher does with them


def verdict(records: OutboxRecords, key: bytes | None, payload: bytes) -> object:
    """What is read of a record of the outbox, or the words with which it is refused."""
    try:
        found = records.read("outbox", key, payload)
    except StateError as error:
        return str(error)
    return (
        (found.release_id, found.key, found.like.window, found.like.epoch) if isinstance(found, RunRelease) else found
    )


@KINDS
def test_a_record_is_refused_alike_whether_or_not_one_of_its_form_came_before(kind: str) -> None:
    """In the same words, for every change of the record and of its key."""
    like = SAMPLES[kind]
    following = another(like, "/other", "other", -7)
    refused = 0
    known = OutboxRecords("visits", 3)
    for data in (encode(following), *changed(encode(following))):
        for key in (following.key, like.key):
            known.read("outbox", like.key, encode(like))
            said = verdict(OutboxRecords("visits", 3), key, data)
            assert verdict(known, key, data) == said
            refused += isinstance(said, str)
    assert refused > 1000
