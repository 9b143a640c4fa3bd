"""Plans of several released spans, and what is in their output by span."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
from support.counting_runs import PRESENCE, SMALL, plan_of, span_of

from sfm_stream.pipeline.counting.plan import CountingPlan
from sfm_stream.privacy.key_rules import KeyRule
from sfm_stream.readable import duration
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import Record
from sfm_stream.windows.grid import grid_of
from sfm_stream.wire.codec import CloseMarker, Release, decode
from sfm_stream.wire.keys import MARKER_KEY

COARSER = ("40ms", "60ms")
"""Of a base of 10 ms. They do not fit into each other."""


def spans_plan(
    keys: KeyRule = PRESENCE,
    *,
    size: int = 10,
    coarser: Sequence[str] = COARSER,
    zone: str = "UTC",
    count: Decimal = Decimal(0),
    shapes: Sequence[SketchShape] = (),
    **arguments: Any,
) -> CountingPlan:
    """count: epsilon of the counts of every span. shapes: of the spans, SMALL where none is given."""
    plan = plan_of(keys, size=size, **arguments)
    named = [span_of(name) for name in (duration(size), *coarser)]
    shaped = [
        replace(span, shape=shapes[n] if n < len(shapes) else SMALL, count_epsilon=count)
        for n, span in enumerate(named)
    ]
    return replace(plan, spans=tuple(shaped), coarser=tuple(grid_of(name, zone) for name in coarser))


def lit_cells(records: Iterable[Record]) -> dict[tuple[str, int, bytes], set[int]]:
    """(span, window start, key) -> lit cells of every release; each is there once."""
    found: dict[tuple[str, int, bytes], set[int]] = {}
    for record in records:
        release = decode(record.value)
        if isinstance(release, Release):
            assert release.span is not None
            place = release.span, release.window.start_ms, release.key
            assert place not in found, "released twice"
            bits = np.unpackbits(np.frombuffer(release.sketch.bits, np.uint8), bitorder="little")
            found[place] = set(np.flatnonzero(bits).tolist())
    return found


def marked(records: Iterable[Record]) -> dict[str, list[tuple[int, int]]]:
    """Span -> its windows that have a marker, in the order of the log."""
    windows: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for record in records:
        marker = decode(record.value)
        if isinstance(marker, CloseMarker):
            assert marker.span is not None
            assert marker.window_ms == marker.through_ms - marker.start_ms
            windows[marker.span].append((marker.start_ms, marker.through_ms))
    return dict(windows)


def assert_in_order(plan: CountingPlan, records: Sequence[Record]) -> None:
    """Windows are closed in the order of their ends, the shorter first; the releases of one stand before its marker."""
    names = [span.name for span in plan.spans]
    closed: list[tuple[int, int]] = []
    for record in records:
        content = decode(record.value)
        assert isinstance(content, Release | CloseMarker)
        assert content.span is not None
        end = content.window.end_ms if isinstance(content, Release) else content.through_ms
        place = end, names.index(content.span)
        assert not closed or closed[-1] < place, "a window of another span comes first"
        if record.key == MARKER_KEY:
            closed.append(place)
