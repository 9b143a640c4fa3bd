"""Answers as bytes: JSON, lines of JSON or CSV; compressed where that is accepted; 304 where nothing has changed."""

from __future__ import annotations

import csv
import hashlib
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Lock
from typing import Any

import msgspec
from fastapi import Request, Response

_LEVEL, _GZIP_BITS = 6, 31
_KEPT_BYTES = 32 << 20
TYPES = {"json": "application/json", "jsonl": "application/jsonl", "csv": "text/csv; charset=utf-8"}


class Replies:
    """Makes responses, and keeps some: an answer is made once until more is published.

    salt: whatever the answers depend on beside the question and the records, such as the configuration.
    """

    def __init__(self, salt: str) -> None:
        self._salt = salt
        self._kept: OrderedDict[tuple[str, bool], bytes] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def reply(self, request: Request, form: str, mark: str, make: Callable[[], Iterable[bytes]]) -> Response:
        """The response to a request. mark: the question with all that decides its answer. make: its bytes, in parts.

        Raises what `make` raises.
        """
        etag = hashlib.sha256(
            f"{self._salt}\n{form}\n{request.scope['path']}\n{mark}".encode("utf-8", "replace")
        ).hexdigest()
        headers = {"etag": f'W/"{etag[:32]}"', "cache-control": "no-cache", "vary": "Accept-Encoding"}
        if _is_known(request.headers.get("if-none-match", ""), headers["etag"]):
            return Response(status_code=304, headers=headers)
        zipped = accepts_gzip(request.headers)
        body = self._kept_body(etag, zipped)
        if body is None:
            body = b"".join(_compressed(make()) if zipped else make())
            self._keep(etag, zipped, body)
        if zipped:
            headers["content-encoding"] = "gzip"
        if form != "json":
            headers["content-disposition"] = f'attachment; filename="answer.{form}"'
        return Response(body, headers=headers, media_type=TYPES[form])

    def _kept_body(self, etag: str, zipped: bool) -> bytes | None:
        with self._lock:
            if (body := self._kept.get((etag, zipped))) is not None:
                self._kept.move_to_end((etag, zipped))
            return body

    def _keep(self, etag: str, zipped: bool, body: bytes) -> None:
        if len(body) > _KEPT_BYTES // 8:
            return
        with self._lock:
            before = self._kept.pop((etag, zipped), b"")
            self._kept[etag, zipped] = body
            self._size += len(body) - len(before)
            while self._size > _KEPT_BYTES:
                _, gone = self._kept.popitem(last=False)
                self._size -= len(gone)


def json_document(value: object) -> list[bytes]:
    """A document of JSON."""
    return [msgspec.json.encode(value), b"\n"]


def json_table(head: Mapping[str, object], name: str, rows: Iterable[object]) -> Iterator[bytes]:
    """An object with what is in `head`, and the rows as a list under a name."""
    yield msgspec.json.encode(head)[:-1] + (b"," if head else b"") + msgspec.json.encode(name) + b":["
    for number, row in enumerate(rows):
        yield (b",\n" if number else b"\n") + msgspec.json.encode(row)
    yield b"]}\n"


def json_lines(rows: Iterable[object]) -> Iterator[bytes]:
    """Each row as a line of JSON."""
    for row in rows:
        yield msgspec.json.encode(row) + b"\n"


def csv_lines(rows: Iterable[Mapping[str, object]]) -> Iterator[bytes]:
    """A table with a column for each field. Lists and objects are JSON, keys too: no program takes one for a formula.

    Nothing is an empty field.
    """
    line = _Line()
    writer = csv.writer(line)
    for number, row in enumerate(rows):
        if not number:
            writer.writerow(row)
            yield line.taken()
        writer.writerow([_field(value) for value in row.values()])
        yield line.taken()


class _Line:
    """What a writer of CSV writes to."""

    def __init__(self) -> None:
        self._text = ""

    def write(self, text: str) -> int:
        self._text += text
        return len(text)

    def taken(self) -> bytes:
        text, self._text = self._text, ""
        return text.encode()


def accepts_gzip(headers: Mapping[str, str]) -> bool:
    """Whether whoever asks takes gzip."""
    weights = dict[str, str]()
    for entry in headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = (part.strip() for part in entry.partition(";"))
        weights[name] = weight.replace(" ", "")
    # What is said of gzip goes before what is said of everything.
    weight = weights.get("gzip", weights.get("*", "q=0"))
    return weight not in ("q=0", "q=0.0", "q=0.00", "q=0.000")


def _field(value: object) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return msgspec.json.encode(value).decode() if isinstance(value, list | dict) else value


def _compressed(parts: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_BITS)
    for part in parts:
        yield packer.compress(part)
    yield packer.flush()


def _is_known(given: str, etag: str) -> bool:
    """Whether If-None-Match names this answer, strongly or weakly."""
    plain = etag.removeprefix("W/")
    return any(each.strip().removeprefix("W/") in (plain, "*") for each in given.split(","))
