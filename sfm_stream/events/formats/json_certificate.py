"""Proof that records which msgspec decoded would be read the same by the strict reader (json_strict.py).

msgspec checks the whole grammar. But in fields that are not on a path it checks neither the encoding nor the depth, and
of a field that is given twice it keeps the last. So the following is checked for a whole block, at a few passes over
its bytes:

- the bytes are UTF-8;
- no record is longer than allowed, or holds more brackets than the allowed depth;
- no escape could spell a configured name;
- all configured names together occur as often as they were decoded. Every record was decoded with each of them, so
  none can hold a second one.

The last check fails where a name also occurs elsewhere in a record (an "id" in several objects). Then the records are
decoded as a whole and encoded again. That drops the second of two equal names in one object; so the records are certain
if no name has become rarer.

Where a block fails, each of its records is checked alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from sfm_stream.events.formats.json_strict import MAX_DEPTH
from sfm_stream.events.lines import MAX_BLOCK_BYTES, Lines, lengths_of

_QUOTE = np.uint8(ord('"'))
_SHALLOW_BYTES = 2 * MAX_DEPTH
"""A valid record of at most this length closes every bracket and so cannot be too deep."""


class Certificate:
    """Finds those decoded records that the strict reader might read otherwise.

    names: the field names on the paths of the schema, and how many times each occurs in a plain record.
    """

    def __init__(self, names: Counter[str], max_record_bytes: int) -> None:
        self._max_bytes = max_record_bytes
        self._names = [_Name(name, times) for name, times in names.items()]
        self._quotes, self._spare = np.empty(0, np.bool_), np.empty(0, np.bool_)
        units = {unit.hex().encode() for name in names for unit in _utf16(name)}
        escapes = [
            rb"\\u(?i:%b)" % b"|".join(sorted(units)),
            *([rb"\\/"] if any("/" in name for name in names) else []),
        ]
        self._disguise = re.compile(b"|".join(escapes))
        self._decoder, self._encoder = msgspec.json.Decoder(), msgspec.json.Encoder()

    def doubtful(self, records: Sequence[bytes]) -> list[int]:
        """Positions of the records that need the strict reader; in the common case none, at the cost of the block."""
        if self._block_is_certain(records):
            return []
        return [index for index, record in enumerate(records) if not self._record_is_certain(record)]

    def _block_is_certain(self, records: Sequence[bytes]) -> bool:
        lengths = lengths_of(records)
        longest = int(lengths.max())
        if longest > self._max_bytes or int(lengths.sum()) > MAX_BLOCK_BYTES:
            return False
        if isinstance(records, Lines):
            block, ends = records.text, records.ends
        else:
            block, ends = b"\n".join(records), np.cumsum(lengths + 1)
        if longest > _SHALLOW_BYTES and not _all_shallow(block, ends):
            return False
        if not self._is_readable(block):
            return False
        return self._names_occur_once(block, records) or self._keeps_names(block, records)

    def _record_is_certain(self, record: bytes) -> bool:
        if len(record) > self._max_bytes or not self._is_readable(record):
            return False
        if len(record) > _SHALLOW_BYTES and record.count(b"[") + record.count(b"{") > MAX_DEPTH:
            return False
        once = all(record.count(name.quoted) == name.expected for name in self._names)
        return once or self._keeps_names(record, [record])

    def _is_readable(self, block: bytes) -> bool:
        """Whether the bytes are UTF-8 and no escape among them could spell a configured name."""
        if not block.isascii():
            try:
                block.decode()
            except UnicodeDecodeError:
                return False
        return b"\\" not in block or not self._disguise.search(block)

    def _keeps_names(self, block: bytes, records: Sequence[bytes]) -> bool:
        """Whether decoding and encoding loses no configured name: then no object holds one of them twice."""
        try:
            again = self._encoder.encode_lines(list(map(self._decoder.decode, records)))
        except (msgspec.MsgspecError, OverflowError):  # a number out of bounds in a field that is not on a path
            return False
        return all(block.count(name.quoted) == again.count(name.quoted) for name in self._names)

    def _names_occur_once(self, block: bytes, records: Sequence[bytes]) -> bool:
        """Whether each configured name occurs in the block as often as it was decoded."""
        column, size = np.frombuffer(block, np.uint8), len(block)
        if size > self._quotes.size:  # kept from block to block: fresh memory costs more than what is done with it
            self._quotes, self._spare = np.empty(size + size // 4, np.bool_), np.empty(size + size // 4, np.bool_)
        quotes, spare = np.equal(column, _QUOTE, out=self._quotes[:size]), self._spare[:size]
        for name in self._names:
            expected = name.expected * len(records)
            if name.at_most(column, quotes, spare) != expected:
                if block.count(name.quoted) != expected:
                    return False
                name.try_another_byte()
        return True


class _Name:
    """One configured name. To count it cheaply, only one of its bytes is compared, and the quote that ends the name.

    quoted: as it is spelled in a record. expected: how often it occurs in a plain one.
    """

    __slots__ = ("_distance", "expected", "quoted")

    def __init__(self, name: str, expected: int) -> None:
        self.quoted, self.expected = b'"%b"' % name.encode(), expected
        self._distance = 1
        """From the byte that is compared to the quote that ends the name."""

    def at_most(self, column: NDArray[np.uint8], quotes: NDArray[np.bool_], spare: NDArray[np.bool_]) -> int:
        """An upper bound of the occurrences in a block, at a third of the cost of counting them.

        quotes: where the block has quotes. spare: memory for the result of one comparison.
        """
        distance = self._distance
        matches = np.equal(column[:-distance], self.quoted[-1 - distance], out=spare[:-distance])
        return int(np.count_nonzero(np.logical_and(matches, quotes[distance:], out=matches)))

    def try_another_byte(self) -> None:
        """Compare another byte of the name from now on: the last one also stands before other quotes."""
        self._distance = self._distance % (len(self.quoted) - 1) + 1


def _utf16(name: str) -> list[bytes]:
    """Two bytes for each \\u escape that would spell the name."""
    encoded = name.encode("utf-16-be")
    return [encoded[at : at + 2] for at in range(0, len(encoded), 2)]


def _all_shallow(block: bytes, ends: NDArray[np.int64]) -> bool:
    """Whether no record holds more opening brackets than the allowed depth. ends: of the records in the block."""
    opening = np.flatnonzero((np.frombuffer(block, np.uint8) | 0x20) == ord("{"))  # '[' differs in this bit only
    return int(np.diff(np.searchsorted(opening, ends), prepend=0).max()) <= MAX_DEPTH
