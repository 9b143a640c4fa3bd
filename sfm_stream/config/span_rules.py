"""The released spans of a configuration: the base span of [window] and the coarser ones of [[spans]]."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from sfm_stream.config.tables import Settings, SpanTable
from sfm_stream.errors import ConfigError, EpsilonError, ShapeError
from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.privacy.epsilon import flip_threshold_of, parse_epsilon, parts_of, plain
from sfm_stream.privacy.released_span import ReleasedSpan
from sfm_stream.readable import duration
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.units import CALENDAR_UNITS, HOUR_MS
from sfm_stream.windows.grid import fixed_size_ms


def base_size_ms(settings: Settings) -> int | None:
    """The length of a window of the base span; None for days, weeks and months; 0 if it is wrong, which size_problems
    reports, and no other rule has to.
    """
    size_ms = fixed_size_ms(settings.window.size)
    return size_ms if size_ms is None or (size_ms and HOUR_MS % size_ms == 0) else 0


def size_problems(settings: Settings) -> Iterator[str]:
    """Problems of the lengths of the spans, one line each with the setting."""
    for setting, name in _named(settings):
        size_ms = fixed_size_ms(name)
        if size_ms is not None and (not size_ms or HOUR_MS % size_ms):
            yield (
                f"{setting}: {name} does not divide one hour; choose a length that does, or "
                '"hour", "day", "week", "month"'
            )
            return
    base = settings.window.size
    seen = {_length(base): "window.size"}
    for setting, name in _named(settings)[1:]:
        if (twice := seen.get(_length(name))) is not None:
            yield f"{setting}: {name} is {twice} already; each span is released once"
        elif not _nests(base, name):
            yield (
                f"{setting}: a {name} is not made of whole windows of {base}. window.size is the finest span, and fits "
                "into each of the others"
            )
        seen[_length(name)] = setting


def zone_problems(settings: Settings, zone: Calendar) -> Iterator[str]:
    """Problems of spans that the days of this zone do not fit."""
    size_ms = base_size_ms(settings)
    for setting, name in _named(settings)[1:]:
        if size_ms and name in CALENDAR_UNITS and zone.day_step_ms % size_ms:
            yield (
                f"{setting}: days of {zone.zone} do not begin on borders of windows of {duration(size_ms)}; choose a "
                f"window.size that divides {duration(zone.day_step_ms)}"
            )


def released_spans(settings: Settings) -> tuple[ReleasedSpan, ...]:
    """The released spans, the base span first, then by length. Raises ConfigError with every problem found."""
    window = SpanTable(size=settings.window.size, epsilon=settings.privacy.epsilon)
    tables = [("privacy", "sketch", window), *((f"spans.{n}",) * 2 + (t,) for n, t in enumerate(settings.spans))]
    problems: list[str] = []
    spans: list[ReleasedSpan] = []
    for of_price, of_shape, table in tables:
        try:
            spans.append(_released_span(settings, table, of_price))
        except ConfigError as error:
            problems.extend(error.problems)
        except EpsilonError as error:
            problems.append(f"{of_price}.{error}")
        except ShapeError as error:
            problems.append(f"{of_shape}.{error}")
    if problems:
        raise ConfigError(*problems)
    return (spans[0], *sorted(spans[1:], key=lambda span: _length(span.name)))


def _released_span(settings: Settings, table: SpanTable, of_price: str) -> ReleasedSpan:
    share = settings.privacy.count_share if table.count_share is None else table.count_share
    for_bits, for_count = _parts(table.epsilon, share, of_price)
    buckets = settings.sketch.buckets if table.buckets is None else table.buckets
    levels = settings.sketch.levels if table.levels is None else table.levels
    return ReleasedSpan(
        name=table.size,
        size_ms=fixed_size_ms(table.size),
        epsilon=table.epsilon,
        flip_threshold=flip_threshold_of(for_bits),
        count_epsilon=for_count,
        shape=SketchShape(buckets, levels),
    )


def _parts(epsilon: Decimal, share: Decimal, table: str) -> tuple[Decimal, Decimal]:
    """(epsilon of the bits, epsilon of the count) of one release. Raises EpsilonError, ConfigError."""
    whole = parse_epsilon(epsilon)
    try:
        return parts_of(whole, share)
    except EpsilonError as error:
        raise ConfigError(
            f"{table}.count_share: {plain(share)} of {table}.epsilon, {plain(whole)}, pays for the count of a release "
            f"and the rest for its bits: {error}. Choose another share, or 0 for releases without a count"
        ) from None


def _named(settings: Settings) -> list[tuple[str, str]]:
    """(setting, name) of each span, the base span first."""
    return [
        ("window.size", settings.window.size),
        *((f"spans.{number}.size", table.size) for number, table in enumerate(settings.spans)),
    ]


def _length(name: str) -> tuple[int, int]:
    """Orders spans by length; equal for two names of the same windows."""
    size_ms = fixed_size_ms(name)
    return (CALENDAR_UNITS.index(name) + 1, 0) if size_ms is None else (0, size_ms)


def _nests(base: str, coarser: str) -> bool:
    """Whether every window of `coarser` is made of whole windows of `base`, as far as no zone decides it."""
    base_ms, coarser_ms = fixed_size_ms(base), fixed_size_ms(coarser)
    if base_ms is None:
        return base == "day" and coarser_ms is None
    return coarser_ms is None or (coarser_ms > base_ms and coarser_ms % base_ms == 0)
