"""What a question is about, in the words that `estimate` and `export` share: --key, --from, --to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import NoReturn
from zoneinfo import ZoneInfo

import click

from sfm_stream.answers.asked import Extent, extent
from sfm_stream.answers.key_notation import key_text, parse_key
from sfm_stream.config.config import Config
from sfm_stream.errors import NothingFound, SfmStreamError
from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.readable import duration, local
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import KeyPart, Window
from sfm_stream.units import FOREVER_MS, INT64_MAX, INT64_MIN, ROLLUPS, SKETCHES
from sfm_stream.wire.keys import decode_key, encode_key

KEY = click.option(
    "--key", "keys", multiple=True, help="Only this key: as it is shown, as JSON, or its fields joined by commas."
)
FROM = click.option(
    "--from", "since", help="Start of the span, on a border of windows: a time, in rollup.zone where it has no offset."
)
TO = click.option("--to", "until", help="End of the span, exclusive.")

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_READINGS = 1024


def asked_span(config: Config, since: str | None, until: str | None, grain: str) -> Window:
    """The span between two ISO 8601 times; one that is not given is no border.

    grain: "window", or the quarter, hour or day whose borders they have to be. Raises click.UsageError, for times
    inside one with the nearest spans.
    """
    calendar = config.calendar
    start_ms = parse_instant(since, calendar, "--from") if since else 0
    end_ms = parse_instant(until, calendar, "--to") if until else FOREVER_MS
    if start_ms >= end_ms:
        raise click.UsageError("--from is not before --to")
    if grain == "quarter" and "quarter" not in calendar.grains:
        raise click.UsageError(f"--by quarter: days of {calendar.zone} are made of hours, no quarters are published")
    size_ms = config.window.size

    def around(time_ms: int) -> Window:
        if grain == "window":
            return Window(time_ms - time_ms % size_ms, time_ms - time_ms % size_ms + size_ms)
        return calendar.span(grain, time_ms)

    inside = [t for t, given in ((start_ms, since), (end_ms, until)) if given and around(t).start_ms != t]
    if inside:
        what = f"a window of {duration(size_ms)}" if grain == "window" else f"a {grain}"
        _refuse(Window(start_ms, end_ms), around, what, inside, calendar.zone)
    return Window(start_ms, end_ms)


def parse_instant(text: str, calendar: Calendar, option: str) -> int:
    """Milliseconds of an ISO 8601 time. One without offset is in the zone of the calendar, a date where its day begins.

    Raises click.BadParameter, in the hours that clocks leave out or show twice with both readings.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise click.BadParameter(
            f"'{text}' is not a time such as 2026-01-31 or 2026-01-31T12:00:00Z", param_hint=option
        ) from None
    if moment.tzinfo is None:
        moment = _in_zone(moment, calendar, option) if not _is_date(text) else _midnight(moment.date(), calendar)
    since_epoch = moment - _EPOCH
    if since_epoch < timedelta(0):
        raise click.BadParameter(f"'{text}' is before 1970, where times begin here", param_hint=option)
    if since_epoch % timedelta(milliseconds=1):
        raise click.BadParameter(f"'{text}' is finer than a millisecond", param_hint=option)
    return since_epoch // timedelta(milliseconds=1)


def asked_keys(config: Config, keys: Sequence[str]) -> set[bytes] | None:
    """Canonical bytes of the keys asked for, None for all. Raises click.BadParameter."""
    return {encoded for key in keys for encoded in _encodings(config, key)} or None


def require_found(
    reader: TopicReader,
    config: Config,
    topic: str,
    grain: str | None,
    keys: Sequence[str],
    found: set[bytes],
    span: Window | None = None,
) -> list[str]:
    """Keys asked for that the answer has nothing of, a line each. Raises NothingFound where it has nothing at all.

    found: canonical keys in the answer. span: what was asked, None where that was everything.
    """
    missing = [key for key in keys if not found.intersection(_encodings(config, key))]
    if found and not missing:
        return []
    pipeline, zone = config.pipeline.id, config.calendar.zone
    there = extent(reader, topic, pipeline, None if topic == SKETCHES else grain)
    if there.span is None:
        raise NothingFound(_nothing_at_all(reader, pipeline, topic, grain))
    lines = [
        f"--key {key}: "
        + (
            "nothing is published for it in this span"
            if there.keys.intersection(_encodings(config, key))
            else f"nothing is published for this key; there are {_examples(there)}"
        )
        for key in missing
    ]
    if found:
        return lines
    if not lines or (span and (there.span.end_ms <= span.start_ms or there.span.start_ms >= span.end_ms)):
        low, high = local(there.span.start_ms, zone), local(there.span.end_ms, zone)
        lines.append(f"nothing is published for this span; what there is lies between {low} and {high} ({zone})")
    raise NothingFound("; ".join(lines))


def _nothing_at_all(reader: TopicReader, pipeline: str, topic: str, grain: str | None) -> str:
    if topic == ROLLUPS and extent(reader, SKETCHES, pipeline).records:
        what = f"{grain}s are" if grain else "roll-ups are"
        return f"pipeline {pipeline}: no {what} published yet, only windows: ask --by window, or --from and --to"
    return f"pipeline {pipeline} has published nothing yet: no window of it is closed, or every key was withheld"


def _examples(there: Extent) -> str:
    shown = ", ".join(key_text(decode_key(key)) for key in sorted(there.keys)[:3])
    return f"{len(there.keys):,} others, such as {shown}"


def _refuse(span: Window, around: Callable[[int], Window], what: str, inside: list[int], zone: str) -> NoReturn:
    """Neither answer for another span nor leave part of this one out without a word."""

    def up(time_ms: int) -> int:
        found = around(time_ms)
        return time_ms if found.start_ms == time_ms else found.end_ms

    outer_end = FOREVER_MS if span.end_ms == FOREVER_MS else up(span.end_ms)
    inner_end = FOREVER_MS if span.end_ms == FOREVER_MS else around(span.end_ms).start_ms
    spans = [Window(around(span.start_ms).start_ms, outer_end)]
    if (inner_start := up(span.start_ms)) < inner_end:
        spans.append(Window(inner_start, inner_end))
    times = " and ".join(local(time_ms, zone) for time_ms in inside)
    nearest = ", or ".join(
        " ".join(
            f'{option} "{local(time_ms, zone)}"'
            for option, time_ms in (("--from", each.start_ms), ("--to", each.end_ms))
            if time_ms not in (0, FOREVER_MS)
        )
        for each in spans
    )
    raise click.UsageError(f"{times} ({zone}) is inside {what}, which is counted as a whole. Ask for {nearest}")


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def _midnight(day: date, calendar: Calendar) -> datetime:
    """The first instant that shows this date, as a day of the roll-ups begins."""
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=ZoneInfo(calendar.zone))
    start_ms = calendar.span("day", round(noon.timestamp() * 1000)).start_ms
    return _EPOCH + timedelta(milliseconds=start_ms)


def _in_zone(moment: datetime, calendar: Calendar, option: str) -> datetime:
    zone = ZoneInfo(calendar.zone)
    first, second = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() == second.utcoffset():
        return first
    readings = [each.astimezone(UTC).astimezone(zone).isoformat() for each in (first, second)]
    is_there = readings[0].startswith(moment.isoformat())
    problem = "comes twice" if is_there else "does not come: clocks are put forward over it"
    raise click.BadParameter(
        f"{moment.isoformat(' ')} {problem} in {calendar.zone} (rollup.zone); give it with its offset, as "
        f"{readings[0]} or {readings[1]}",
        param_hint=option,
    )


def _encodings(config: Config, text: str) -> list[bytes]:
    """Canonical bytes that a key on the command line may mean: a number is looked for as text and as an integer."""
    fields = len(config.event.key)
    readings = {reading for reading in _readings(text, fields) if len(reading) == fields}
    found = []
    for reading in readings:
        try:
            found.append(encode_key(reading))
        except SfmStreamError:  # text or a number that no key can hold
            continue
    if found:
        return sorted(found)
    if not fields:
        raise click.BadParameter(
            "event.key is []: everything is counted under one key, leave --key out", param_hint="--key"
        )
    raise click.BadParameter(
        f"a key has {fields} field{'s' * (fields > 1)}: as it is shown, as a JSON array, or joined by commas",
        param_hint="--key",
    )


def _can_be_key(part: object) -> bool:
    return type(part) is str or (type(part) is int and INT64_MIN <= part <= INT64_MAX)


def _readings(text: str, fields: int) -> list[tuple[KeyPart, ...]]:
    shown = parse_key(text)
    readings = [shown] if shown is not None else []
    try:
        listed = json.loads(text) if text.startswith("[") else None
    except ValueError:
        listed = None
    if isinstance(listed, list) and all(_can_be_key(part) for part in listed):
        readings.append(tuple(listed))
    parts = text.split(",") if fields > 1 else [text] if fields else []
    if fields and len(parts) == fields and 2**fields <= _MAX_READINGS:
        choices: list[list[KeyPart]] = [
            [part, int(part)] if _INTEGER.fullmatch(part) and _can_be_key(int(part)) else [part] for part in parts
        ]
        readings.extend(product(*choices))
    return readings
