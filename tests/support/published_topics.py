"""Published records in memory, made by hand: releases with about as many ones as their items and the noise give."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from support.rollup_runs import QUARTER_MS, Run, at, marker, release

from sfm_stream.answers.asked_keys import AskedKey
from sfm_stream.answers.asked_span import EVERYTHING
from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import KeyValue, Window

T0 = at("2026-01-01")
K1, K4 = flip_threshold_of(1), flip_threshold_of(4)
SHAPE = SketchShape(64, 8)
UTC = calendar("UTC", QUARTER_MS, 0, 2030)
VIEWS = ReleaseTerms("views")
"""Of the pipeline whose records these are, as a reader without its configuration knows them."""


def sketched(
    number: int, key: KeyValue = "a", items: int = 40, k: int = K4, shape: SketchShape = SHAPE, **other: Any
) -> bytes:
    """A release of the window of this number, with about as many ones as this many items and the noise give."""
    rng = np.random.default_rng(number * 100 + items)
    cells = np.zeros(shape.cells, bool)
    levels = np.minimum(rng.geometric(0.5, items) - 1, shape.levels - 1)
    cells[levels * shape.buckets + rng.integers(0, shape.buckets, items)] = True
    noisy = cells ^ (rng.random(shape.cells) < k / 2**64)
    bits = "".join("1" if cell else "0" for cell in noisy)
    return release(T0 + number * QUARTER_MS, key, bits, k=k, shape=shape, **other)


def closed(low: int, high: int, **other: Any) -> bytes:
    return marker(T0 + low * QUARTER_MS, T0 + high * QUARTER_MS, **other)


def span(low: int, high: int) -> Window:
    return Window(T0 + low * QUARTER_MS, T0 + high * QUARTER_MS)


def question(grain: str | None, span: Window = EVERYTHING, keys: Collection[bytes] | None = None) -> Question:
    """keys: canonical bytes of the keys that are asked for, None for all."""
    asked = None if keys is None else tuple(AskedKey(key.hex(), frozenset([key])) for key in keys)
    return Question(grain, asked, span)


def rolled(sketches: Iterable[bytes], expire_ms: int | None = None) -> list[bytes]:
    """What the roll-up publishes for these records."""
    run = Run(UTC, list(sketches))
    run.finish(expire_ms)
    return run.history
