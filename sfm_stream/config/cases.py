"""The cases of `sfm-stream test`: events in the order in which they are read, each with its expected fate.

docs/testing.md explains the file.
"""

from __future__ import annotations

import difflib
import json
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, StrictStr, ValidationError, model_validator

from sfm_stream.config.config import Config
from sfm_stream.config.setting_errors import explained
from sfm_stream.config.tables import SettingsTable
from sfm_stream.config.toml_text import toml_table, toml_text
from sfm_stream.config.values import Instant, KeyEntry, SpanName
from sfm_stream.errors import ConfigError
from sfm_stream.events.event_schema import ISO8601, NUMERIC_UNITS
from sfm_stream.types import Reason

REASONS = {reason.name.lower(): reason for reason in Reason if reason is not Reason.OK}
"""Why a record is not counted, by the name that docs/operating.md explains."""

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_SECOND_US = dict(zip(NUMERIC_UNITS, (1_000_000, 1000, 1, None), strict=True))
"""Microseconds of one of each unit; None for nanoseconds, of which there are more in one."""


def _reason(value: Any) -> Reason:
    if not isinstance(value, str) or value not in REASONS:
        close = difflib.get_close_matches(str(value), REASONS, 1)
        hint = f'did you mean "{close[0]}"?' if close else 'docs/operating.md, "Dropped records", has them all'
        raise ValueError(f"expected the reason why a record is dropped, such as {', '.join([*REASONS][:2])}; {hint}")
    return REASONS[value]


class Case(SettingsTable):
    """One record, and what is expected of it: either `counted` or `dropped`. The record is one of three."""

    name: Annotated[StrictStr, Field(min_length=1)]
    event: dict[str, Any] | None = None
    """The fields of its object; a date and time without quotes is written as event.time_unit says."""
    text: StrictStr | None = None
    """The record as it stands."""
    tombstone: StrictBool = False
    """A record of a topic without a value."""
    arrival: Instant | None = None
    """The time stamp that the record has on its topic; left out, that of the case before it."""
    partition: Annotated[StrictInt, Field(ge=0)] | None = None
    """In which partition it is; left out, where its key belongs."""
    counted: dict[SpanName, Instant] | None = None
    """The start of the window of each released span in which it counts; it counts in no other."""
    key: KeyEntry | None = None
    """Under which key it counts; left out, it is not looked at."""
    dropped: Annotated[Reason, BeforeValidator(_reason)] | None = None

    @model_validator(mode="after")
    def _is_one_record_with_one_fate(self) -> Case:
        if (self.event is not None) + (self.text is not None) + self.tombstone != 1:
            raise ValueError("one of event, text and tombstone = true is needed, and only one")
        if (self.counted is None) == (self.dropped is None):
            raise ValueError('one of counted and dropped is needed: counted = {hour = ...}, or dropped = "late"')
        if self.dropped is not None and self.key is not None:
            raise ValueError("key is for a case that is counted")
        if self.counted == {}:
            raise ValueError("counted needs a span, as in counted = {hour = 2026-01-31T10:00:00Z}")
        return self


class Cases(SettingsTable):
    """The whole file."""

    cases: Annotated[list[Case], Field(min_length=1)]
    partitions: Annotated[StrictInt, Field(ge=1, le=100_000)] = 1
    """Of the topic."""
    first_start: Instant | None = None
    """The time of the clock when the pipeline is started first, which decides what is plausible; left out, now."""


def parse_cases(text: str, name: str, config: Config) -> Cases:
    """The cases in the text of a file, as they fit a configuration. Raises ConfigError with every problem found."""
    table = toml_table(text, name)
    try:
        parsed = Cases.model_validate(table)
    except ValidationError as error:
        raise ConfigError(*explained(error, Cases)) from None
    problems = [problem for number in range(len(parsed.cases)) for problem in _misfits(parsed, number, config)]
    if not config.on_cluster and parsed.partitions != 1:
        problems.append("partitions: a file has none; they are for a pipeline on a cluster")
    if problems:
        raise ConfigError(*problems)
    return parsed


def record_of(case: Case, config: Config) -> bytes | None:
    """The bytes of the record of a case; None for a tombstone."""
    if case.tombstone:
        return None
    if case.text is not None:
        return case.text.encode()
    written = json.dumps(case.event, default=lambda value: _written(value, config), ensure_ascii=False)
    return written.encode()


def load_cases(path: Path, config: Config) -> Cases:
    """As parse_cases, of a file."""
    return parse_cases(toml_text(path), str(path), config)


def _misfits(parsed: Cases, number: int, config: Config) -> list[str]:
    """What of the case with this number does not fit the configuration."""
    case, place, found = parsed.cases[number], f"cases.{number}", []
    names = [span.name for span in config.budget.spans]
    found += [
        f"{place}.counted: {name} is not released; released are {', '.join(names)}"
        for name in case.counted or ()
        if name not in names
    ]
    if config.on_cluster:
        if case.arrival is None and number == 0:
            found.append(f"{place}.arrival: needed: the time stamp that the record has on the topic")
        if case.partition is not None and case.partition >= parsed.partitions:
            found.append(f"{place}.partition: {case.partition} is not one of {parsed.partitions} (partitions)")
    else:
        for name in ("arrival", "partition"):
            if getattr(case, name) is not None:
                found.append(f"{place}.{name}: lines of a file have none; it is for a pipeline on a cluster")
        if case.tombstone:
            found.append(f"{place}.tombstone: lines of a file always have a value; it is for a pipeline on a cluster")
        if case.text is not None and (not case.text.strip("\r") or "\n" in case.text):
            found.append(f"{place}.text: a line of a file is not empty, and ends where the next one begins")
    if case.event is not None:
        try:
            record_of(case, config)
        except ValueError as error:
            found.append(f"{place}.event: {error}")
    return found


def _written(value: object, config: Config) -> int | float | str:
    """A TOML time as the producers of this input write times. Raises ValueError."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        kind = "a time without offset" if isinstance(value, date | time) else type(value).__name__
        raise ValueError(f"{kind} in it has no JSON; write a time with an offset, or text in quotes")
    unit, since_us = config.event.time_unit, (value - _EPOCH) // _MICROSECOND
    if unit == ISO8601:
        return value.isoformat()
    if unit not in _SECOND_US:
        return value.astimezone(UTC).strftime(unit)
    one_us = _SECOND_US[unit]
    if one_us is None:
        return since_us * 1000
    return since_us / one_us if since_us % one_us else since_us // one_us
