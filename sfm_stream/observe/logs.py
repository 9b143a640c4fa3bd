"""Logs: one line for each event on standard error, as text or as JSON, with time, level, logger, message and fields.

Fields are what a call passes as `extra`. Of an exception the line shows the type and where it was raised, never the
message: that may hold the record on which it failed. The Kafka client logs whole records below WARNING, so its lines
below WARNING are dropped, whatever level is set.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from traceback import extract_tb
from typing import TextIO

from sfm_stream.readable import visible

LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_CLIENT = "kafka"
_CLIENT_LOOP = "kafka.net.selector"
"""Warns of each step of its loop that took a tenth of a second. In a busy worker many steps do."""
_CLIENT_SASL = "kafka.net.sasl"
"""Warns at each connection that security = "sasl_plaintext" sends passwords in the clear."""
_STANDARD_FIELDS = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


def configure(form: str = "text", level: str = "info", stream: TextIO | None = None) -> None:
    """Log in this form ("text" or "json"), from this level on, to `stream` (None: standard error)."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    handler.addFilter(_without_records)
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(LEVELS[level])
    logging.getLogger(_CLIENT).setLevel(max(LEVELS[level], logging.WARNING))
    for name in (_CLIENT_LOOP, _CLIENT_SASL):
        logging.getLogger(name).setLevel(logging.ERROR)


class TextLines(logging.Formatter):
    """2026-01-31T12:00:00.000Z info sfm_stream.composition.kafka: created topic views.outbox partition=3"""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items())
        return visible(f"{_time(record)} {record.levelname.lower()} {record.name}: {record.getMessage()}{fields}")


class JsonLines(logging.Formatter):
    """The same fields as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        head = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        return json.dumps(head | _fields(record) | head, default=str)


def _without_records(record: logging.LogRecord) -> bool:
    """Whether a line may be shown: not one of the Kafka client below WARNING, whatever level its logger has."""
    client = record.name == _CLIENT or record.name.startswith(_CLIENT + ".")
    return not client or record.levelno >= logging.WARNING


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields = {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}
    if record.exc_info and record.exc_info[0] is not None:
        fields["error"] = record.exc_info[0].__name__
        frames = extract_tb(record.exc_info[2])
        fields["at"] = " > ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
    return fields
