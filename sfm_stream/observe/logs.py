"""One line for each event on standard error, as text or as JSON: time, level, logger, message, and fields.

Fields are what a call passes as `extra`. An exception shows its type and where it came from, never its message, which
may hold what it failed on. The client of the cluster prints records at its lower levels: below WARNING it is not heard.
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
_LOOP = "kafka.net.selector"
"""Warns of each step of its own loop that took a tenth of a second, which a busy worker's steps do."""
_SASL = "kafka.net.sasl"
"""Warns at each connection that security = "sasl_plaintext" sends passwords in the clear."""
_OWN = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


def configure(form: str = "text", level: str = "info", stream: TextIO | None = None) -> None:
    """Log from now on in this form ("text" or "json"), from this level on, to standard error unless told otherwise."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    handler.addFilter(_speaks)
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(LEVELS[level])
    logging.getLogger(_CLIENT).setLevel(max(LEVELS[level], logging.WARNING))
    for name in (_LOOP, _SASL):
        logging.getLogger(name).setLevel(logging.ERROR)


class TextLines(logging.Formatter):
    """2026-01-31T12:00:00.000Z info sfm_stream.composition.kafka: created topic views.outbox partition=3"""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items())
        return visible(f"{_time(record)} {record.levelname.lower()} {record.name}: {record.getMessage()}{fields}")


class JsonLines(logging.Formatter):
    """The same as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        head = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        return json.dumps(head | _fields(record) | head, default=str)


def _speaks(record: logging.LogRecord) -> bool:
    """Whatever level one of its loggers was given: the client of the cluster says nothing below WARNING."""
    client = record.name == _CLIENT or record.name.startswith(_CLIENT + ".")
    return not client or record.levelno >= logging.WARNING


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields = {name: value for name, value in vars(record).items() if name not in _OWN}
    if record.exc_info and record.exc_info[0] is not None:
        fields["error"] = record.exc_info[0].__name__
        frames = extract_tb(record.exc_info[2])
        fields["at"] = " > ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
    return fields
