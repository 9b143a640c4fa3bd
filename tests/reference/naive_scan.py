"""What can be found of a record that is no JSON, byte by byte and with the whole of its structure in memory."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass
class Bracketed:
    """An array or object: members between commas, each a list of pieces."""

    opening: int
    members: list[list[Piece]] = field(default_factory=lambda: [[]])
    closed: bool = False


Piece: TypeAlias = "Bracketed | bytes"
"""A bracketed part, a string with its quotes (the last one may lack), a colon, or one other byte."""


def naive_scan(record: bytes, paths: list[tuple[str, ...]]) -> list[bytes | None]:
    """The bytes of the flat value at each path of the first object, None where that is not given once and whole."""
    top = structure(record)
    return [look_up(top, path) if top is not None and top.opening == ord("{") else None for path in paths]


def structure(record: bytes) -> Bracketed | None:
    """The first bracketed part; any closing bracket closes the innermost open one."""
    first: Bracketed | None = None
    inside: list[Bracketed] = []
    at = 0
    while at < len(record):
        byte = record[at]
        piece: Piece = record[at : at + 1]
        if byte == ord('"'):
            piece = string_at(record, at)
        elif byte in b"[{":
            piece = Bracketed(byte)
        elif byte in b"]}":
            if first is None:
                return None
            inside.pop().closed = True
            if not inside:
                return first
            at += 1
            continue
        if byte == ord(",") and inside:
            inside[-1].members.append([])
        elif inside:
            inside[-1].members[-1].append(piece)
        at += len(piece) if isinstance(piece, bytes) else 1
        if isinstance(piece, Bracketed):
            first = first or piece
            inside.append(piece)
    return first


def string_at(record: bytes, start: int) -> bytes:
    end = start + 1
    while end < len(record) and record[end] != ord('"'):
        end += 2 if record[end] == ord("\\") else 1
    return record[start : end + 1]


def look_up(node: Bracketed, path: tuple[str, ...]) -> bytes | None:
    values = []
    for number, member in enumerate(node.members):
        named = name_and_value(member)
        if named is not None and named[0] == path[0]:
            values.append((named[1], node.closed or number < len(node.members) - 1))
    if len(values) != 1:
        return None
    [(value, ended)] = values
    if len(path) > 1:
        rest = stripped(value)
        inner = rest[0] if rest else None
        return look_up(inner, path[1:]) if isinstance(inner, Bracketed) and inner.opening == ord("{") else None
    if not ended or any(isinstance(piece, Bracketed) for piece in value):
        return None
    return b"".join(piece for piece in value if isinstance(piece, bytes)).strip(b" \t\n\r")


def name_and_value(member: list[Piece]) -> tuple[str, list[Piece]] | None:
    rest = stripped(member)
    name, rest = (rest[0], stripped(rest[1:])) if rest else (b"", [])
    if not isinstance(name, bytes) or not name.startswith(b'"') or not rest or rest[0] != b":":
        return None
    try:
        return json.loads(name, strict=False), rest[1:]
    except ValueError:
        return None


def stripped(pieces: list[Piece]) -> list[Piece]:
    """Without leading white space."""
    while pieces and isinstance(pieces[0], bytes) and pieces[0] in (b" ", b"\t", b"\n", b"\r"):
        pieces = pieces[1:]
    return pieces
