"""What is published: releases, close markers and roll-ups, as frozen values that are valid by construction.

A record that could not be written and read back raises FormatError, naming the field, when it is made. No field holds a
count of events, an offset of the source or a time of the clock on the wall.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from typing import TypeAlias

from sfm_stream.errors import FormatError
from sfm_stream.readable import duration
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.sketch.tally import Tally
from sfm_stream.types import Window
from sfm_stream.units import HOUR_MS, INT31_MAX, INT64_MAX, LONGEST_DAY_MS, QUARTER_MS, SHORTEST_DAY_MS
from sfm_stream.wire.fields import KEY, TEXT, UINT, layout_of, pieces
from sfm_stream.wire.keys import decode_key

UNITS = ("removed", "blanked")
STATUSES = ("ok", "empty", "saturated", "uninformative")
"""In the order of their codes on the wire."""
SPANS_MS = {
    "quarter": (QUARTER_MS, QUARTER_MS),
    "hour": (HOUR_MS, HOUR_MS),
    "day": (SHORTEST_DAY_MS, LONGEST_DAY_MS),
}

_PIPELINE = re.compile(r"[a-z0-9._-]{1,64}")
_HASH = re.compile(r"[a-z0-9._:-]{1,64}")
_FINGERPRINT = re.compile(r"[0-9a-f]{1,64}")
_ZONE = re.compile(r"(?=.{1,64}\Z)[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*")
_IDENTITY = layout_of(
    ("pipeline", TEXT), ("epoch", UINT), ("partition", UINT), ("start_ms", UINT), ("end_ms", UINT), ("key", KEY)
)


@dataclass(frozen=True, slots=True)
class Release:
    """One private sketch: a key, in one window, of one partition. Kind 1.

    pipeline: 1 to 64 of [a-z0-9._-]. epoch: 1..2^31-1. 0 <= partition < partitions <= 2^31-1. window: 0 <= start <
    end < 2^63 ms. key: canonical bytes (wire/keys.py). unit: neighbours differ by all occurrences of one item under
    one key in one window, removed, or blanked in place. sketch: flip threshold below 2^63. Raises FormatError.
    """

    pipeline: str
    epoch: int
    partition: int
    partitions: int
    window: Window
    key: bytes
    unit: str
    sketch: SfmSketch

    def __post_init__(self) -> None:
        _check_origin(self.pipeline, self.epoch, self.partition, self.partitions)
        _check_window(self.window)
        _check_choice("unit", self.unit, UNITS)
        _check_noise("k", self.sketch.flip_threshold, GRID // 2 - 1)
        if self.sketch.count is not None:
            raise FormatError("count", "version 1 has no field for it: flip with count_share=0")
        _check_text("hash", self.sketch.hash, _HASH)
        decode_key(self.key)

    @property
    def release_id(self) -> bytes:
        """The 16 bytes that name this release: see the function `release_id`."""
        return release_id(self.pipeline, self.epoch, self.partition, self.window, self.key)


@dataclass(frozen=True, slots=True)
class CloseMarker:
    """Every window of this partition that ends in (start_ms, through_ms] is decided for ever. Kind 2.

    window_ms: the size of a window, which divides the range. fingerprint: 1 to 64 lower-case hex digits that stand
    for the configuration. The rest as in Release. Raises FormatError.
    """

    pipeline: str
    epoch: int
    partition: int
    partitions: int
    start_ms: int
    through_ms: int
    window_ms: int
    fingerprint: str

    def __post_init__(self) -> None:
        _check_origin(self.pipeline, self.epoch, self.partition, self.partitions)
        _check_int("start_ms", self.start_ms, 0, INT64_MAX)
        _check_int("through_ms", self.through_ms, self.start_ms + 1, INT64_MAX)
        _check_int("window_ms", self.window_ms, 1, INT64_MAX)
        if (self.through_ms - self.start_ms) % self.window_ms:
            raise FormatError("window_ms", "does not divide through_ms - start_ms")
        _check_text("fingerprint", self.fingerprint, _FINGERPRINT)


@dataclass(frozen=True, slots=True)
class RollupRecord:
    """The releases of one key over a longer span: tally, merged sketch and estimate. Kind 3.

    grain and window: a quarter or an hour exactly, a day of 22 to 26 hours, on borders of 15 minutes. zone: IANA name
    of the zone whose day it is. Coverage: of the `windows` of the span (up to 2^31-1), `decided` are decided and
    `released`, as many as the tally holds, have a release of this key. complete: nothing more can come. revision:
    1..2^63-1, grows with what was merged. tally, merged: same shape and hash. value, standard_error, low,
    high: items, 0..inf, low <= high. confidence: 0 < c < 1. status: one of STATUSES. Raises FormatError.
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
    tally: Tally
    merged: SfmSketch
    value: float
    standard_error: float
    low: float
    high: float
    confidence: float
    status: str

    def __post_init__(self) -> None:
        _check_origin(self.pipeline, self.epoch, self.partition, self.partitions)
        _check_span(self.grain, self.window)
        _check_text("zone", self.zone, _ZONE)
        _check_choice("unit", self.unit, UNITS)
        decode_key(self.key)
        _check_int("released", self.released, 1, INT31_MAX)
        _check_int("windows", self.windows, self.released, INT31_MAX)
        _check_int("decided", self.decided, 0, self.windows)
        if type(self.complete) is not bool:
            raise FormatError("complete", f"expected a bool, got {type(self.complete).__name__}")
        _check_int("revision", self.revision, 1, INT64_MAX)
        self._check_sketches()
        self._check_figures()

    def _check_sketches(self) -> None:
        if self.released != self.tally.releases:
            raise FormatError("released", f"{self.released} where the tally has {self.tally.releases}")
        _check_noise("k", self.tally.flip_threshold, GRID // 2 - 1)
        _check_noise("merged_k", self.merged.flip_threshold, GRID // 2)
        _check_text("hash", self.tally.hash, _HASH)
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
        _check_choice("status", self.status, STATUSES)


WireRecord: TypeAlias = Release | CloseMarker | RollupRecord


def release_id(pipeline: str, epoch: int, partition: int, window: Window, key: bytes) -> bytes:
    """The 16 bytes that name a release. At most one payload may ever be published under them.

    The first half of SHA-256 over the msgpack array [pipeline, epoch, partition, start_ms, end_ms, key], each field
    written as it is in the record.
    """
    written = pieces(_IDENTITY, (pipeline, epoch, partition, window.start_ms, window.end_ms, key))
    return hashlib.sha256(b"".join(written)).digest()[:16]


def _check_origin(pipeline: str, epoch: int, partition: int, partitions: int) -> None:
    _check_text("pipeline", pipeline, _PIPELINE)
    _check_int("epoch", epoch, 1, INT31_MAX)
    _check_int("partitions", partitions, 1, INT31_MAX)
    _check_int("partition", partition, 0, partitions - 1)


def _check_window(window: Window) -> None:
    _check_int("start_ms", window.start_ms, 0, INT64_MAX - 1)
    _check_int("end_ms", window.end_ms, window.start_ms + 1, INT64_MAX)


def _check_span(grain: str, window: Window) -> None:
    _check_window(window)
    _check_choice("grain", grain, tuple(SPANS_MS))
    shortest, longest = SPANS_MS[grain]
    if not shortest <= window.end_ms - window.start_ms <= longest:
        raise FormatError("end_ms", f"a span of {duration(window.end_ms - window.start_ms)} is not one {grain}")
    for name, border in (("start_ms", window.start_ms), ("end_ms", window.end_ms)):
        if border % QUARTER_MS:
            raise FormatError(name, "not on a border of 15 minutes")


def _check_noise(field: str, flip_threshold: int, high: int) -> None:
    # 2^63 is pure noise: only a merge of very many sketches may have it.
    _check_int(field, flip_threshold, 1, high)


def _check_int(field: str, value: object, low: int, high: int) -> None:
    if type(value) is not int:
        raise FormatError(field, f"expected an integer, got {type(value).__name__}")
    if not low <= value <= high:
        raise FormatError(field, f"{value} is outside {low}..{high}")


def _check_text(field: str, value: object, allowed: re.Pattern[str]) -> None:
    if type(value) is not str:
        raise FormatError(field, f"expected text, got {type(value).__name__}")
    if not allowed.fullmatch(value):
        raise FormatError(field, f"does not match {allowed.pattern}")


def _check_choice(field: str, value: object, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise FormatError(field, f"not one of {', '.join(allowed)}")
