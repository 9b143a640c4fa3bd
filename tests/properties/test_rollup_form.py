"""Roll-ups by their form: of any bytes the same record, the same head and the same error as without one."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.test_codec_fuzz import rollups
from properties.test_release_form import changed
from reference.wire_samples import bare, f64, raw_rollup, rollup, sized_rollup, u64

from sfm_stream.errors import FormatError
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import Window
from sfm_stream.wire.codec import decode_at, encode
from sfm_stream.wire.heads import head_at
from sfm_stream.wire.keys import encode_key
from sfm_stream.wire.record_layouts import LAYOUTS, ROLLUP
from sfm_stream.wire.records import RollupRecord
from sfm_stream.wire.rollup_form import RollupForm, RollupForms

SHAPE = SketchShape(16, 2)
SAMPLES = {
    "merged": bare(sized_rollup(SHAPE)),
    "raw": bare(raw_rollup(SHAPE)),
    "without span": bare(rollup(SHAPE)),
}
KINDS = pytest.mark.parametrize("kind", SAMPLES)
_T = TypeVar("_T")


def another(like: RollupRecord) -> RollupRecord:
    """A roll-up of the same form: of another window and key, with other numbers."""
    length_ms = like.window.end_ms - like.window.start_ms
    window = Window(like.window.start_ms + 4 * length_ms, like.window.end_ms + 4 * length_ms)
    figures = {"value": 7.5, "standard_error": 2.25, "low": 0.0, "high": float("inf"), "confidence": 0.5}
    return replace(
        like, window=window, key=encode_key(("other", 5, b"x")), revision=9, decided=0, status="empty", **figures
    )


def said(of, *arguments: object) -> object:
    """What a reader gives, or the words that it refuses with."""
    try:
        return of(*arguments)
    except FormatError as error:
        return str(error)


def learnt(*records: RollupRecord) -> RollupForms:
    forms = RollupForms()
    for record in records:
        forms.head_at("here", encode(record))
    return forms


def assert_the_same(forms: RollupForms, data: bytes) -> None:
    assert said(forms.head_at, "here", data) == said(head_at, "here", data)
    assert said(forms.decode_at, "here", data) == said(decode_at, "here", data)


@KINDS
def test_of_every_change_a_form_says_what_decode_says(kind: str) -> None:
    like = SAMPLES[kind]
    form, forms, taken = RollupForm(like), learnt(like), 0
    for data in changed(encode(another(like))):
        verdict = said(decode_at, "here", data)
        found = form.record(data)
        assert found is None or found == verdict
        taken += found is not None
        assert said(forms.decode_at, "here", data) == verdict
        head = form.rollup_head(data)
        assert head is None or head == head_at("here", data)
    assert taken > 100, "figures may have many values"


@given(st.one_of(rollups(3), rollups(1), rollups(2)), rollups(3), rollups(3))
@settings(max_examples=100)
def test_whatever_was_read_before_each_record_is_read_as_it_is(
    one: RollupRecord, other: RollupRecord, third: RollupRecord
) -> None:
    forms = learnt(one, other)
    for record in (one, other, third, another(other)):
        assert_the_same(forms, encode(record))
        assert forms.decode_at("here", encode(record)) == record


def test_a_number_that_decode_refuses_is_refused_in_its_words() -> None:
    like = SAMPLES["merged"]
    data, forms = encode(another(like)), learnt(like)
    for name, before, spoiled in (
        ("value", f64(7.5), f64(-0.0)),
        ("value", f64(7.5), f64(float("nan"))),
        ("standard_error", f64(2.25), f64(-1.0)),
        ("confidence", f64(0.5), f64(1.0)),
        ("revision", u64(9), u64(0)),
        ("revision", u64(9), u64((1 << 64) - 1)),
        ("revision", u64(9), b"\x09"),
    ):
        assert data.count(before) == 1, name
        damaged = data.replace(before, spoiled)
        assert isinstance(said(decode_at, "here", damaged), str)
        assert_the_same(forms, damaged)


def test_each_field_that_is_shared_makes_a_form_of_its_own() -> None:
    like = SAMPLES["merged"]
    assert like.kind is not None
    form, kind = RollupForm(like), like.kind
    for other in (
        replace(like, pipeline="visitt"),
        replace(like, epoch=like.epoch + 1),
        replace(like, partition=like.partition + 1),
        replace(like, partitions=like.partitions + 1),
        replace(like, unit="blanked"),
        replace(like, zone="Europe/Rome"),
        replace(like, kind=replace(kind, flip_threshold=kind.flip_threshold + 1)),
        replace(like, kind=replace(kind, hash="xxh65")),
        replace(like, kind=replace(kind, shape=SketchShape(32, 2))),
    ):
        assert form.record(encode(other)) is None
        assert form.rollup_head(encode(other)) is None
        assert_the_same(learnt(like), encode(other))


def test_a_form_holds_every_field_of_its_version() -> None:
    """A field that is neither in the shared bytes nor read as a number would be lost."""
    names = [field.name for field in LAYOUTS[3][ROLLUP]]
    varying = (
        names[names.index("start_ms") : names.index("zone")],
        names[names.index("windows") : names.index("buckets")],
    )
    assert varying[0] == ["start_ms", "end_ms"]
    assert varying[1] == [
        *("windows", "decided", "released", "complete", "revision"),
        *("value", "standard_error", "low", "high", "confidence", "status"),
    ]
    assert names[-1] == "key"
