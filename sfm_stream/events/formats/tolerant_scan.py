"""The values at a few paths of a record that cannot be read strictly, found whatever the rest of it holds.

The scan knows strings, brackets, commas and colons, and takes everything else as it comes: bytes that are not UTF-8,
words and numbers that are none, any depth. Any closing bracket closes the innermost open one, and a string ends at the
next quote that no backslash precedes, or with the record. So a value reaches from the colon after its name to the comma
or bracket that ends it, and another value in its place changes nothing of what is found elsewhere.

For a record that can be read strictly, what is found is what strict reading finds (strict_json.py). Time grows
linearly with the record, memory does not grow with its depth.
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
    """Finds the values at some paths. No path may equal another or lead into it."""

    def __init__(self, paths: Sequence[tuple[str, ...]]) -> None:
        self._steps: dict[tuple[int, bytes], int] = {}
        """(number of an object, name of a member) to the number of the member, for what lies on a path."""
        self._chains: list[list[int]] = []
        """Of each path: the numbers of its members from the outside in."""
        for path in paths:
            chain, at = [], _ROOT
            for name in path:
                at = self._steps.setdefault((at, name.encode()), len(self._steps) + 1)
                chain.append(at)
            self._chains.append(chain)
        self._leaves = {chain[-1] for chain in self._chains}

    def find(self, record: bytes, start: int = 0) -> list[bytes | None]:
        """The bytes of the text, number or word at each path of the first object behind `start`.

        None where there is none, where an array or object stands there or goes before, where the record ends before
        the value does, and where a name on the path is given twice in its object.
        """
        seen, found = [0] * (len(self._steps) + 1), dict[int, bytes]()
        if self._chains:
            self._walk(record, start, seen, found)
        return [found.get(chain[-1]) if all(seen[number] == 1 for number in chain) else None for chain in self._chains]

    def _walk(self, record: bytes, start: int, seen: list[int], found: dict[int, bytes]) -> None:
        """Note how often each member on a path is there, and the bytes of those that end one."""
        first = _FIRST_BRACKET.match(record, start)
        if first is None or first[1] != b"{":
            return
        objects, position = [_ROOT], first.end()
        while objects:
            member = _MEMBER.match(record, position)
            assert member is not None
            position, ending = member.end(), member[3]
            number = None if member[1] is None else self._steps.get((objects[-1], _plain(member[1])))
            if number is not None:
                seen[number] += 1
                if number in self._leaves:
                    if ending == b"," or ending in _CLOSING:
                        found[number] = member[2].strip(_SPACES)
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
    """A name without its escapes; a name that has invalid ones as it is, with the backslash that no path can hold."""
    if b"\\" not in name:
        return name
    try:
        return str(json.loads(b'"%b"' % name)).encode()
    except ValueError:  # no UTF-8, no such escape, or half a surrogate pair
        return name


def _ended(record: bytes, position: int, depth: int = 1) -> tuple[bytes, int]:
    """What ends the value in which `position` lies inside so many brackets, and the position behind it.

    A comma, a bracket that closes, or nothing at the end of the record.
    """
    while True:
        while depth:
            found = _BRACKETS.match(record, position)
            assert found is not None
            if found[1] is not None:
                depth += len(found[1])
                position = found.end()
            elif found[2] is not None:
                closed = min(depth, len(found[2]))
                depth -= closed
                position = found.start(2) + closed
            else:
                return b"", found.end()
        rest = _REST.match(record, position)
        assert rest is not None
        position = rest.end()
        if rest[1] not in _OPENING:
            return rest[1], position
        depth = 1
