"""The values at a few paths of a JSON record, also of one that cannot be read strictly.

The scan knows strings, brackets, commas and colons. It accepts everything else: bytes that are not UTF-8, invalid words
and numbers, any depth. Any closing bracket closes the innermost open one. A string ends at the next quote that no
backslash precedes, or at the end of the record. A value reaches from the colon after its name to the comma or bracket
that ends it. So the content of one value has no influence on what is read of another.

For a record that can be read strictly, the scan gives the same values as strict reading (json_strict.py). The time it
takes grows linearly with the length of the record; its memory does not grow with the depth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

_SPACES = b" \t\n\r"
_SPACE = rb"[ \t\n\r]*+"
_TEXT = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
_STRING = rb'"' + _TEXT + rb'(?:"|\\?\Z)'
_FLAT = rb'[^"\[\]{},]*+(?:' + _STRING + rb'[^"\[\]{},]*+)*+'
_INSIDE = rb'[^"\[\]{}]*+(?:' + _STRING + rb'[^"\[\]{}]*+)*+'

_FIRST_BRACKET = re.compile(_INSIDE + rb"([\[\]{}])", re.DOTALL)
_MEMBER = re.compile(rb'[ \t\n\r,]*+(?:"(%b)"%b:)?+(%b)([\[\]{},]|\Z)' % (_TEXT, _SPACE, _FLAT), re.DOTALL)
"""Groups: the name, if there is one; what stands behind it without any bracket or comma; what ends that."""
_REST = re.compile(_FLAT + rb"([\[\]{},]|\Z)", re.DOTALL)
_BRACKETS = re.compile(_INSIDE + rb"(?:([\[{]++)|([\]}]++)|\Z)", re.DOTALL)
_OPENING, _CLOSING = (b"[", b"{"), (b"]", b"}")
_ROOT: Final = 0


class TolerantScan:
    """Reads the values at some paths. No path may equal another or lead into it."""

    def __init__(self, paths: Sequence[tuple[str, ...]]) -> None:
        self._steps: dict[tuple[int, bytes], int] = {}
        """(number of an object, name of a member) to the number of the member, for what lies on a path."""
        self._chains: list[list[int]] = []
        """Of each path: the numbers of its members from the outside in."""
        for path in paths:
            chain, number = [], _ROOT
            for name in path:
                number = self._steps.setdefault((number, name.encode()), len(self._steps) + 1)
                chain.append(number)
            self._chains.append(chain)
        self._leaves = {chain[-1] for chain in self._chains}

    def values(self, record: bytes) -> list[bytes | None]:
        """The bytes of the text, number or word at each path of the first object.

        None where the path has no value, where an array or object is the value or part of it, where the record ends
        before the value does, and where a name on the path is given twice in its object.
        """
        times_seen, values = [0] * (len(self._steps) + 1), dict[int, bytes]()
        if self._chains:
            self._walk(record, times_seen, values)
        return [
            values.get(chain[-1]) if all(times_seen[number] == 1 for number in chain) else None
            for chain in self._chains
        ]

    def _walk(self, record: bytes, times_seen: list[int], values: dict[int, bytes]) -> None:
        """Count how often each member on a path occurs, and collect the bytes of those that end a path."""
        first = _FIRST_BRACKET.match(record)
        if first is None or first[1] != b"{":
            return
        objects, position = [_ROOT], first.end()
        while objects:
            member = _MEMBER.match(record, position)
            assert member is not None
            position, ending = member.end(), member[3]
            number = None if member[1] is None else self._steps.get((objects[-1], _plain(member[1])))
            if number is not None:
                times_seen[number] += 1
                if number in self._leaves:
                    if ending == b"," or ending in _CLOSING:
                        values[number] = member[2].strip(_SPACES)
                elif ending == b"{" and not member[2].strip(_SPACES):
                    objects.append(number)
                    continue
            if ending in _OPENING:
                ending, position = _ended(record, position)
            while ending in _CLOSING:
                objects.pop()
                if not objects:
                    return
                ending, position = _ended(record, position, depth=0)
            if not ending:
                return


def _plain(name: bytes) -> bytes:
    """A name without its escapes. One with invalid escapes is left as it is: no path holds a backslash."""
    if b"\\" not in name:
        return name
    try:
        return str(json.loads(b'"%b"' % name)).encode()
    except ValueError:  # no UTF-8, no such escape, or half a surrogate pair
        return name


def _ended(record: bytes, position: int, depth: int = 1) -> tuple[bytes, int]:
    """What ends a value, and the position behind that: a comma, a closing bracket, or b"" at the end of the record.

    position: within the value. depth: how many brackets of the value are open there.
    """
    while True:
        while depth:
            brackets = _BRACKETS.match(record, position)
            assert brackets is not None
            if brackets[1] is not None:
                depth += len(brackets[1])
                position = brackets.end()
            elif brackets[2] is not None:
                closed = min(depth, len(brackets[2]))
                depth -= closed
                position = brackets.start(2) + closed
            else:
                return b"", brackets.end()
        rest = _REST.match(record, position)
        assert rest is not None
        position = rest.end()
        if rest[1] not in _OPENING:
            return rest[1], position
        depth = 1
