"""Records read fast: a typed decoder for the plain ones, and a proof that reading them fast changes nothing.

msgspec checks the whole grammar, but of a field that is not configured neither the encoding nor the depth, and of a
field given twice it keeps the last. So what it decoded is certified by blocks, at a few passes over the bytes:

- the bytes are UTF-8;
- no record is longer than allowed, or holds more brackets than the allowed depth;
- no escape could spell a configured name;
- the configured names occur, in all records together, as often as they were decoded. Each record was decoded with
  every one of them, so none can hold a second one.

A name that also stands elsewhere in a record (an "id" in several objects) defeats the last; then the records are
decoded whole, a second name in one object getting lost, and encoded again: no name may have become rarer. Where a block
fails, each record is judged alone; what then fails is left to strict_json.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.formats.json_strict import MAX_DEPTH
from sfm_stream.units import INT64_MAX, INT64_MIN

_Int64 = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]
_Tree: TypeAlias = "dict[str, _Tree | str]"
_QUOTE = np.uint8(ord('"'))
_MAX_BLOCK_BYTES = 1 << 23
_SHALLOW_BYTES = 2 * MAX_DEPTH
"""A valid record of at most this length closes every bracket and so cannot be too deep."""


class PlainRows:
    """Records that were decoded, in order: the columns of their fields.

    odd: positions of the records that were not. mixed_times: whether there may be floats and texts among the times of
    a numeric unit.
    """

    __slots__ = ("_layout", "_rows", "mixed_times", "odd")

    def __init__(self, layout: _Layout, rows: list[Any], odd: list[int], mixed_times: bool) -> None:
        self._layout, self._rows, self.odd, self.mixed_times = layout, rows, odd, mixed_times

    def __len__(self) -> int:
        return len(self._rows)

    def items(self) -> list[Any]:
        """Texts and int64 integers, floats where the format allows them."""
        return [row.item for row in self._within("item")]

    def encoded_items(self) -> list[bytes] | None:
        """The items as UTF-8, if all of them are texts."""
        try:
            return [row.item.encode() for row in self._within("item")]
        except AttributeError:
            return None

    def times(self) -> list[Any]:
        """Numbers or texts, as the time unit demands."""
        return [row.time for row in self._within("time")]

    def keys(self) -> list[Any]:
        """Keys as they are interned."""
        layout = self._layout
        if layout.key_parts == 0:
            return [()] * len(self._rows)
        if layout.key_parts == 1:
            return [row.key for row in self._within("key")]
        return list(map(layout.key_tuple, self._rows))

    def _within(self, role: str) -> list[Any]:
        holder = self._layout.holders[role]
        return list(map(holder, self._rows)) if holder else self._rows


class JsonLines:
    """Decodes the plain records of one format."""

    def __init__(self, form: EventSchema) -> None:
        self._layout = _Layout(form)
        self._certificate = _Certificate(form, self._layout.names)
        self._decode = self._layout.decoder(mixed_times=False).decode
        self.mixed_times = False
        """Whether times may be floats and texts now; a column of integers is cheaper."""

    def mix_times(self) -> None:
        """From the next block on, floats and texts are plain times of a numeric unit too."""
        self._decode = self._layout.decoder(mixed_times=True).decode
        self.mixed_times = True

    def read(self, values: Sequence[bytes | None]) -> PlainRows:
        """The plain records among those given. Never raises for their content."""
        rows, odd = self._decoded(values)
        if rows:
            plain = values if not odd else _without(values, odd)
            doubtful = self._certificate.doubtful(plain)  # type: ignore[arg-type]  # None is never decoded
            if doubtful:
                where = _without(range(len(values)), odd)
                odd = sorted([*odd, *(where[index] for index in doubtful)])
                rows = _without(rows, doubtful)
        return PlainRows(self._layout, rows, odd, self.mixed_times)

    def _decoded(self, values: Sequence[bytes | None]) -> tuple[list[Any], list[int]]:
        rows: list[Any] = []
        odd: list[int] = []
        rest = iter(values)
        while True:
            try:
                rows.extend(map(self._decode, rest))  # type: ignore[arg-type]  # None raises TypeError
                return rows, odd
            except (msgspec.DecodeError, UnicodeDecodeError, TypeError, RecursionError):
                # What was decoded before the failure is in rows; the iterator stands behind the record that failed.
                odd.append(len(rows) + len(odd))


class _Layout:
    """Nested struct types that follow the paths of a format, and where their fields are."""

    def __init__(self, form: EventSchema) -> None:
        self.key_parts = len(form.key)
        roles = ["item", *([] if form.time is None else ["time"])]
        roles += ["key"] if self.key_parts == 1 else [f"key{part}" for part in range(self.key_parts)]
        self._numeric_time = not (form.time is None or form.time_unit == "iso8601" or "%" in form.time_unit)
        self._float_items = form.float_items
        self._tree: _Tree = {}
        for role, path in zip(roles, form.paths(), strict=True):
            node = self._tree
            for name in path[:-1]:
                node = node.setdefault(name, {})  # type: ignore[assignment]
            node[path[-1]] = role
        self.names = Counter[str]()
        places: dict[str, str] = {}
        self._visit(self._tree, "", places)
        self.holders = {
            role: attrgetter(place.rpartition(".")[0]) if "." in place else None for role, place in places.items()
        }
        self.key_tuple = attrgetter(*(places[role] for role in roles if role.startswith("key") or not form.key))

    def decoder(self, mixed_times: bool) -> msgspec.json.Decoder[Any]:
        """A decoder for records in which every field is there and of its plain type."""
        types: dict[str, Any] = {"item": str | _Int64, "key": str | _Int64, "time": str}
        if self._float_items:
            types["item"] = str | _Int64 | float
        if self._numeric_time:
            types["time"] = _Int64 | float | str if mixed_times else _Int64
        return msgspec.json.Decoder(self._struct(self._tree, types))

    def _visit(self, tree: _Tree, prefix: str, places: dict[str, str]) -> None:
        for index, (name, below) in enumerate(tree.items()):
            self.names[name] += 1
            if isinstance(below, str):
                places[below] = prefix + below
            else:
                self._visit(below, f"{prefix}n{index}.", places)

    def _struct(self, tree: _Tree, types: dict[str, Any]) -> type[msgspec.Struct]:
        fields: list[tuple[str, Any]] = []
        renamed: dict[str, str] = {}
        for index, (name, below) in enumerate(tree.items()):
            if isinstance(below, str):
                own, kind = below, types["key" if below.startswith("key") else below]
            else:
                own, kind = f"n{index}", self._struct(below, types)
            fields.append((own, kind))
            renamed[own] = name
        return msgspec.defstruct("Event", fields, rename=renamed, gc=False)


class _Certificate:
    """Finds, among records that were decoded, those that strict reading might judge otherwise."""

    def __init__(self, form: EventSchema, names: Counter[str]) -> None:
        self._max_bytes = form.max_record_bytes
        self._names = [_Name(name, times) for name, times in names.items()]
        self._quotes, self._spare = np.empty(0, np.bool_), np.empty(0, np.bool_)
        units = {unit.hex().encode() for name in names for unit in _utf16(name)}
        escapes = [
            rb"\\u(?i:%b)" % b"|".join(sorted(units)),
            *([rb"\\/"] if any("/" in name for name in names) else []),
        ]
        self._disguise = re.compile(b"|".join(escapes))
        self._whole, self._encoder = msgspec.json.Decoder(), msgspec.json.Encoder()

    def doubtful(self, records: Sequence[bytes]) -> list[int]:
        """Positions of the records that need strict reading; in the common case none, at the cost of the block."""
        if self._block_clear(records):
            return []
        return [index for index, record in enumerate(records) if not self._clear(record)]

    def _block_clear(self, records: Sequence[bytes]) -> bool:
        longest = max(map(len, records))
        if longest > self._max_bytes:
            return False
        if longest * len(records) > _MAX_BLOCK_BYTES and sum(map(len, records)) > _MAX_BLOCK_BYTES:
            return False
        block = b"\n".join(records)
        if longest > _SHALLOW_BYTES and not _shallow(block, records):
            return False
        return self._readable(block) and (self._each_once(block, records) or self._none_lost(block, records))

    def _clear(self, record: bytes) -> bool:
        if len(record) > self._max_bytes or not self._readable(record):
            return False
        if len(record) > _SHALLOW_BYTES and record.count(b"[") + record.count(b"{") > MAX_DEPTH:
            return False
        once = all(record.count(name.quoted) == name.expected for name in self._names)
        return once or self._none_lost(record, [record])

    def _readable(self, block: bytes) -> bool:
        """Whether the bytes are UTF-8 and spell no configured name with an escape."""
        if not block.isascii():
            try:
                block.decode()
            except UnicodeDecodeError:
                return False
        return b"\\" not in block or not self._disguise.search(block)

    def _none_lost(self, block: bytes, records: Sequence[bytes]) -> bool:
        try:
            again = self._encoder.encode_lines(list(map(self._whole.decode, records)))
        except (msgspec.MsgspecError, OverflowError):  # a number out of bounds in a field that is not asked for
            return False
        return all(block.count(name.quoted) == again.count(name.quoted) for name in self._names)

    def _each_once(self, block: bytes, records: Sequence[bytes]) -> bool:
        column, size = np.frombuffer(block, np.uint8), len(block)
        if size > self._quotes.size:  # kept from block to block: fresh memory costs more than what is done with it
            self._quotes, self._spare = np.empty(size + size // 4, np.bool_), np.empty(size + size // 4, np.bool_)
        quotes, spare = np.equal(column, _QUOTE, out=self._quotes[:size]), self._spare[:size]
        for name in self._names:
            expected = name.expected * len(records)
            if name.at_most(column, quotes, spare) != expected:
                if block.count(name.quoted) != expected:
                    return False
                name.try_another_sign()
        return True


class _Name:
    """One configured name, and a sign that stands in for it: one of its bytes, at its distance before a quote.

    quoted: as it is spelled in a record. expected: how often it occurs in a plain one.
    """

    __slots__ = ("_distance", "expected", "quoted")

    def __init__(self, name: str, expected: int) -> None:
        self.quoted, self.expected = b'"%b"' % name.encode(), expected
        self._distance = 1

    def at_most(self, column: NDArray[np.uint8], quotes: NDArray[np.bool_], spare: NDArray[np.bool_]) -> int:
        """An upper bound of the occurrences in a block, at a third of the cost of counting them."""
        distance = self._distance
        signs = np.equal(column[:-distance], self.quoted[-1 - distance], out=spare[:-distance])
        return int(np.count_nonzero(np.logical_and(signs, quotes[distance:], out=signs)))

    def try_another_sign(self) -> None:
        """The sign occurs elsewhere too: take the next."""
        self._distance = self._distance % (len(self.quoted) - 1) + 1


def _utf16(name: str) -> list[bytes]:
    """Two bytes for each \\u escape that would spell the name."""
    encoded = name.encode("utf-16-be")
    return [encoded[at : at + 2] for at in range(0, len(encoded), 2)]


def _shallow(block: bytes, records: Sequence[bytes]) -> bool:
    """Whether no record holds more opening brackets than the allowed depth."""
    opening = np.flatnonzero((np.frombuffer(block, np.uint8) | 0x20) == ord("{"))  # '[' differs in this bit only
    ends = np.cumsum(np.fromiter(map(len, records), np.int64, len(records)) + 1)
    return int(np.diff(np.searchsorted(opening, ends), prepend=0).max()) <= MAX_DEPTH


def _without(values: Sequence[Any], positions: Sequence[int]) -> list[Any]:
    kept = np.ones(len(values), np.bool_)
    kept[positions] = False
    return [values[index] for index in np.flatnonzero(kept).tolist()]


def as_positions(count: int, odd: Sequence[int]) -> NDArray[np.intp]:
    """Shape (count - len(odd),): the positions that are not odd."""
    kept = np.ones(count, np.bool_)
    kept[odd] = False
    return np.flatnonzero(kept)
