"""The fields of each kind of record in each version of the format, in wire order (docs/wire-format.md)."""

from __future__ import annotations

from sfm_stream.wire.fields import BITMAP, DIGEST, FLAG, INT, KEY, REAL, TEXT, UINT, RecordForm, RecordLayout, layout_of

RELEASE, MARKER, ROLLUP = 1, 2, 3
"""The kinds."""
FIGURES = ("value", "standard_error", "low", "high", "confidence")

_HEAD = (("version", UINT), ("kind", UINT))
_SOURCE = (("pipeline", TEXT), ("epoch", UINT), ("partition", UINT), ("partitions", UINT))
_SPAN = (("span", TEXT),)
_WINDOW = (("start_ms", UINT), ("end_ms", UINT))
_SHAPE = (("buckets", UINT), ("levels", UINT), ("k", UINT), ("hash", TEXT))
_COVERED = (("start_ms", UINT), ("through_ms", UINT), ("window_ms", UINT), ("fingerprint", TEXT))
_ESTIMATED = (
    *(("grain", TEXT), *_WINDOW, ("zone", TEXT), ("unit", TEXT)),
    *(("windows", UINT), ("decided", UINT), ("released", UINT), ("complete", FLAG), ("revision", UINT)),
    *((name, REAL) for name in FIGURES),
    ("status", UINT),  # a code: the length of a name would vary with the estimate
    *_SHAPE,
)
_PLANES = (("planes", BITMAP),)
_MERGED = (("merged_k", UINT), ("merged", BITMAP), ("key", KEY))

LAYOUTS: dict[int, dict[int, RecordLayout]] = {
    1: {
        RELEASE: layout_of(
            *(*_HEAD, ("id", DIGEST), *_SOURCE, *_WINDOW, ("unit", TEXT), *_SHAPE, ("bits", BITMAP), ("key", KEY))
        ),
        MARKER: layout_of(*_HEAD, *_SOURCE, *_COVERED),
        ROLLUP: layout_of(*_HEAD, *_SOURCE, *_ESTIMATED, *_PLANES, *_MERGED),
    },
    2: {
        RELEASE: layout_of(
            *(*_HEAD, ("id", DIGEST), *_SOURCE, *_SPAN, *_WINDOW, ("unit", TEXT), *_SHAPE, ("bits", BITMAP)),
            *(("count_epsilon", TEXT), ("count", INT), ("key", KEY)),
        ),
        MARKER: layout_of(*_HEAD, *_SOURCE, *_SPAN, ("spans", TEXT), *_COVERED),
        ROLLUP: layout_of(
            *(*_HEAD, *_SOURCE, ("origin", TEXT), *_SPAN, *_ESTIMATED, *_PLANES),
            *(("ones", BITMAP), ("count_epsilon", TEXT), ("counts", BITMAP), *_MERGED),
        ),
    },
    3: {
        ROLLUP: layout_of(
            *(*_HEAD, *_SOURCE, ("origin", TEXT), *_SPAN, *_ESTIMATED, ("count_epsilon", TEXT), ("key", KEY))
        ),
    },
}
"""Version to kind to fields."""
FORMS = {
    version: {kind: RecordForm(layout) for kind, layout in layouts.items()} for version, layouts in LAYOUTS.items()
}
"""The same, to write and read whole records with."""
