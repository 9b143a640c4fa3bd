"""The instant that a written time stands for, in the zone of a pipeline where it has no offset."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from sfm_stream.errors import QuestionError
from sfm_stream.pipeline.rollup.calendar import Calendar

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_YEAR = 9999
"""The spans around a time have to be times too, in every zone, and no year follows this one."""


def parse_instant(text: str, calendar: Calendar, part: str) -> int:
    """Milliseconds of an ISO 8601 time. One without offset is in the zone of the calendar, a date where its day begins.

    part: of the question, for messages. Raises QuestionError; for a time in the hours that clocks leave out or show
    twice it names both readings.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise QuestionError(f"'{text}' is not a time such as 2026-01-31 or 2026-01-31T12:00:00Z", part) from None
    if moment.year >= _LAST_YEAR:
        raise QuestionError(f"'{text}' is not before {_LAST_YEAR}, where times end here", part)
    if moment.year < _EPOCH.year - 1:
        raise QuestionError(f"'{text}' is before 1970, where times begin here", part)
    if moment.tzinfo is None:
        moment = _midnight(moment.date(), calendar) if _is_date(text) else _in_zone(moment, calendar, part)
    since_epoch = moment - _EPOCH
    if since_epoch < timedelta(0):
        raise QuestionError(f"'{text}' is before 1970, where times begin here", part)
    if since_epoch % timedelta(milliseconds=1):
        raise QuestionError(f"'{text}' is finer than a millisecond", part)
    return since_epoch // timedelta(milliseconds=1)


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


def _in_zone(moment: datetime, calendar: Calendar, part: str) -> datetime:
    zone = ZoneInfo(calendar.zone)
    first, second = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() == second.utcoffset():
        return first
    readings = [each.astimezone(UTC).astimezone(zone).isoformat() for each in (first, second)]
    comes_twice = readings[0].startswith(moment.isoformat())
    problem = "comes twice" if comes_twice else "does not come: clocks are put forward over it"
    raise QuestionError(
        f"{moment.isoformat(' ')} {problem} in {calendar.zone} (rollup.zone); give it with its offset, as "
        f"{readings[0]} or {readings[1]}",
        part,
    )
