"""What is published: releases, close markers and roll-ups, as frozen values that are valid by construction.

A record that could not be written and read back raises FormatError, naming the field, when it is made. No field holds a
count of events, an offset of the source or a time of the clock on the wall.

A roll-up without a tally is of version 3 of the format. Of the others a record that names its released span is of
version 2, one that does not of version 1.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from sfm_stream.errors import FormatError
from sfm_stream.sketch.agreement import Combinable, SketchKind
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.sketch.tally import Tally
from sfm_stream.types import Window
from sfm_stream.units import GRAINS, INT31_MAX, INT64_MAX
from sfm_stream.wire.count_fields import check_count_epsilon
from sfm_stream.wire.field_checks import (
    CALENDAR_SPANS,
    FINGERPRINT,
    HASH,
    SPAN,
    SPANS_MS,
    ZONE,
    check_choice,
    check_grain,
    check_int,
    check_noise,
    check_source,
    check_span,
    check_spans,
    check_text,
    check_window,
)
from sfm_stream.wire.fields import KEY, TEXT, UINT, layout_of, pieces
from sfm_stream.wire.keys import decode_key

UNITS = ("removed", "blanked")
STATUSES = ("ok", "empty", "saturated", "uninformative")
"""In the order of their codes on the wire."""
ORIGINS = ("raw", "merged")

_IDENTITY = layout_of(
    ("pipeline", TEXT), ("epoch", UINT), ("partition", UINT), ("start_ms", UINT), ("end_ms", UINT), ("key", KEY)
)


@dataclass(frozen=True, slots=True)
class Release:
    """One private sketch: a key, in one window, of one partition. Kind 1.

    pipeline: 1 to 64 of [a-z0-9._-]. epoch: 1..2^31-1. 0 <= partition < partitions <= 2^31-1. window: 0 <= start <
    end < 2^63 ms. key: canonical bytes (wire/keys.py). unit: neighbours differ by all occurrences of one item under
    one key in one window, removed, or blanked in place. sketch: flip threshold below 2^63; with a noisy count only
    where the span is named. span: the name of the released span, "5m" or "day"; None: the length of the window says it.
    Raises FormatError.
    """

    pipeline: str
    epoch: int
    partition: int
    partitions: int
    window: Window
    key: bytes
    unit: str
    sketch: SfmSketch
    span: str | None = None

    def __post_init__(self) -> None:
        check_source(self.pipeline, self.epoch, self.partition, self.partitions)
        check_window(self.window)
        check_choice("unit", self.unit, UNITS)
        check_noise("k", self.sketch.flip_threshold, GRID // 2 - 1)
        check_text("hash", self.sketch.hash, HASH)
        if self.span is not None:
            check_span(self.span, self.window)
        if self.sketch.count is not None:
            if self.span is None:
                raise FormatError("count", "version 1 has no field for it: name the span, or flip with count_share=0")
            check_count_epsilon(self.sketch.count.epsilon)
        decode_key(self.key)

    @property
    def release_id(self) -> bytes:
        """The 16 bytes that name this release: see the function `release_id`."""
        return release_id(self.pipeline, self.epoch, self.partition, self.window, self.key)


@dataclass(frozen=True, slots=True)
class CloseMarker:
    """Every window of this partition that ends in (start_ms, through_ms] is decided for ever. Kind 2.

    window_ms: the size of a window, which divides the range. fingerprint: 1 to 64 lower-case hex digits that stand
    for the configuration. span: as in Release: only the windows of this span are decided; a marker of days, weeks or
    months is of one window. spans: with it, the names of all spans that the epoch releases, the finest first; so a
    reader of any marker knows which spans to expect. The rest as in Release. Raises FormatError.
    """

    pipeline: str
    epoch: int
    partition: int
    partitions: int
    start_ms: int
    through_ms: int
    window_ms: int
    fingerprint: str
    span: str | None = None
    spans: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_source(self.pipeline, self.epoch, self.partition, self.partitions)
        check_int("start_ms", self.start_ms, 0, INT64_MAX)
        check_int("through_ms", self.through_ms, self.start_ms + 1, INT64_MAX)
        check_int("window_ms", self.window_ms, 1, INT64_MAX)
        if (self.through_ms - self.start_ms) % self.window_ms:
            raise FormatError("window_ms", "does not divide through_ms - start_ms")
        if self.span is not None:
            check_span(self.span, Window(self.start_ms, self.start_ms + self.window_ms))
            if self.span in CALENDAR_SPANS[1:] and self.start_ms + self.window_ms != self.through_ms:
                raise FormatError("through_ms", f"a marker of one {self.span} is of one window")
        check_spans(self.spans, self.span)
        check_text("fingerprint", self.fingerprint, FINGERPRINT)


@dataclass(frozen=True, slots=True)
class RollupRecord:
    """The estimate of one key over a span of the calendar, made of its releases. Kind 3.

    grain and window: a quarter or an hour exactly, a day of 22 to 26 hours, on borders of 15 minutes; in version 2 a
    week or a month as well. zone: IANA name of the zone whose day it is. Coverage: of the `windows` of the span (up to
    2^31-1), `decided` are decided and `released` have a release of this key. complete: nothing more can come. revision:
    1..2^63-1, grows with what was merged. tally, merged: of these releases, of one shape and hash; None in version 3,
    where they follow from the releases. value, standard_error, low, high: items, 0..inf, low <= high. confidence: 0 < c
    < 1. status: one of STATUSES. span: the released span that the windows are of; None where the epoch names none.
    origin: "raw" where this is the one release of its span, "merged" where it is made of several windows of a shorter
    one; None with the span. count_epsilon: what the noisy count of each release costs; None where they have none.
    kind: shape, flip threshold and hash of the releases, given where there is no tally. Raises FormatError.
    """

    pipeline: str
    epoch: int
    partition: int
    partitions: int
    grain: str
    window: Window
    zone: str
    key: bytes
    unit: str
    windows: int
    decided: int
    released: int
    complete: bool
    revision: int
    tally: Tally | None
    merged: SfmSketch | None
    value: float
    standard_error: float
    low: float
    high: float
    confidence: float
    status: str
    origin: str | None = None
    span: str | None = None
    count_epsilon: Decimal | None = None
    kind: SketchKind | None = None

    @property
    def of_releases(self) -> Combinable:
        """Shape, flip threshold and hash of the releases."""
        found = self.tally or self.kind
        assert found is not None
        return found

    def __post_init__(self) -> None:
        check_source(self.pipeline, self.epoch, self.partition, self.partitions)
        check_grain(self.grain, self.window, GRAINS if self.span is None else tuple(SPANS_MS))
        check_text("zone", self.zone, ZONE)
        check_choice("unit", self.unit, UNITS)
        decode_key(self.key)
        check_int("released", self.released, 1, INT31_MAX)
        check_int("windows", self.windows, self.released, INT31_MAX)
        check_int("decided", self.decided, 0, self.windows)
        if type(self.complete) is not bool:
            raise FormatError("complete", f"expected a bool, got {type(self.complete).__name__}")
        check_int("revision", self.revision, 1, INT64_MAX)
        self._check_sketches()
        self._check_figures()
        self._check_origin()

    def _check_sketches(self) -> None:
        if (self.tally is None) != (self.merged is None) or (self.tally is None) == (self.kind is None):
            raise FormatError("planes", "a record has both tally and merged sketch, or their kind and neither of them")
        check_noise("k", self.of_releases.flip_threshold, GRID // 2 - 1)
        check_text("hash", self.of_releases.hash, HASH)
        if self.tally is None or self.merged is None:
            return
        if self.released != self.tally.releases:
            raise FormatError("released", f"{self.released} where the tally has {self.tally.releases}")
        check_noise("merged_k", self.merged.flip_threshold, GRID // 2)
        if self.merged.shape != self.tally.shape:
            raise FormatError("merged", f"shape {self.merged.shape} where the tally has {self.tally.shape}")
        if self.merged.hash != self.tally.hash:
            raise FormatError("merged", "its hash is not the tally's")

    def _check_figures(self) -> None:
        for name in ("value", "standard_error", "low", "high", "confidence"):
            figure = getattr(self, name)
            if not isinstance(figure, float):
                raise FormatError(name, f"expected a float, got {type(figure).__name__}")
            if math.isnan(figure):
                raise FormatError(name, "NaN")
            if figure < 0:
                raise FormatError(name, "negative")
        if self.low > self.high:
            raise FormatError("low", "above high")
        if not 0 < self.confidence < 1:
            raise FormatError("confidence", f"{self.confidence} is not between 0 and 1")
        check_choice("status", self.status, STATUSES)

    def _check_origin(self) -> None:
        sizes = None if self.tally is None else self.tally.sizes
        if (self.origin is None) != (self.span is None):
            raise FormatError("origin", "origin and span are both given, or neither of them")
        if self.origin is None or self.span is None:
            if self.count_epsilon is not None or (sizes is not None and any(sizes.counts)):
                raise FormatError("count_epsilon", "version 1 has no field for noisy counts: name origin and span")
            return
        check_choice("origin", self.origin, ORIGINS)
        if self.origin == "raw":
            check_span(self.span, self.window)
            if self.windows != 1 or (self.tally is not None and sizes is None):
                raise FormatError("origin", "a raw record is of one window and one release, and says what it counted")
        else:
            check_text("span", self.span, SPAN)
            check_choice("grain", self.grain, GRAINS)
        if self.count_epsilon is not None:
            check_count_epsilon(self.count_epsilon)
        if sizes is not None and {None if c is None else c.epsilon for c in sizes.counts} != {self.count_epsilon}:
            raise FormatError("count_epsilon", "not that of the noisy counts of the releases")


WireRecord: TypeAlias = Release | CloseMarker | RollupRecord


def release_id(pipeline: str, epoch: int, partition: int, window: Window, key: bytes) -> bytes:
    """The 16 bytes that name a release. At most one payload may ever be published under them.

    The first half of SHA-256 over the msgpack array [pipeline, epoch, partition, start_ms, end_ms, key], each field
    written as it is in the record.
    """
    return hashlib.sha256(identity_before_key(pipeline, epoch, partition, window) + key).digest()[:16]


def identity_before_key(pipeline: str, epoch: int, partition: int, window: Window) -> bytes:
    """What a release id is the hash of, up to the key, which comes last."""
    return b"".join(pieces(_IDENTITY, (pipeline, epoch, partition, window.start_ms, window.end_ms, b"")))
