"""Runs of batches: what is handed on together of a fetched partition, and how plain batches are found in one walk.

A producer that sends one record at a time has the log consist of small batches that differ in nothing but their record.
A walk takes as many of those as follow each other, and stops at whatever needs a closer look.
"""

from __future__ import annotations

from struct import Struct

from kafka.record.util import calc_crc32c

from sfm_stream import kernels
from sfm_stream.kernels import PlainBatches

unpack_header = Struct(">qiibIhiqqqhii").unpack_from
"""Of the header of a batch of format 2: offset, length, leader epoch, format, check sum, attributes, delta of the last
offset, first and largest time, producer id and epoch, sequence, number of records.
"""
LENGTH_AT, OVERHEAD, CHECKED_FROM, SHORTEST, MAGIC = 8, 12, 21, 61, 2
"""Where the length of a batch is; what it does not count, itself and what lies before it; where that begins which the
check sum is of; the header; the format.
"""
CODEC, APPENDED, TRANSACTIONAL, CONTROL = 0x07, 0x08, 0x10, 0x20
"""Of the attributes."""
MOST_BYTES, _MOST_RECORDS = 1 << 20, 1 << 13
"""Of batches that are handed on together. One of them alone may have more."""
_MOST_UNPACKED_BYTES = 16 << 20
"""The same, once they are decompressed."""


class Run:
    """Batches of a fetch that follow each other in the log and are handed on together: of one clock, and bounded.

    fetched: the bytes of the fetch. most_bytes: of a run of several batches. first: the offset from which on records
    are wanted. appended: the bit of the attributes for time stamps of the broker.
    """

    __slots__ = (
        "_fetched",
        "_most_bytes",
        "_stretches",
        "appended",
        "batches",
        "first",
        "next_offset",
        "records",
        "size_bytes",
        "unpacked_bytes",
    )

    def __init__(self, fetched: memoryview, most_bytes: int) -> None:
        self._fetched, self._most_bytes = fetched, most_bytes
        self._stretches: list[list[int]] = []  # [begin, end) in the fetch; what is hidden lies between them
        self.batches = self.records = self.size_bytes = self.unpacked_bytes = 0
        self.first = self.next_offset = self.appended = 0

    def takes(self, appended: int, size_bytes: int, unpacked_bytes: int, records: int) -> bool:
        """Whether a batch can go along with those that are here."""
        return (
            appended == self.appended
            and self.size_bytes + size_bytes <= self._most_bytes
            and self.unpacked_bytes + unpacked_bytes <= _MOST_UNPACKED_BYTES
            and self.records + records <= _MOST_RECORDS
        )

    def add(self, begin: int, end: int, batches: int, records: int, unpacked_bytes: int, next_offset: int) -> None:
        """Takes what lies there in the fetch, behind what is here."""
        if self._stretches and self._stretches[-1][1] == begin:
            self._stretches[-1][1] = end
        else:
            self._stretches.append([begin, end])
        self.batches += batches
        self.records += records
        self.size_bytes += end - begin
        self.unpacked_bytes += unpacked_bytes
        self.next_offset = next_offset

    def plain_behind(self, at: int, check_crcs: bool) -> PlainBatches | None:
        """The plain batches that begin there and can go along with those that are here, of which there is one."""
        most_bytes = min(self._most_bytes - self.size_bytes, _MOST_UNPACKED_BYTES - self.unpacked_bytes)
        most_records = _MOST_RECORDS - self.records
        if most_bytes <= 0 or most_records <= 0:
            return None
        walk = plain_batches if (native := kernels.native()) is None else native.plain_batches
        return walk(self._fetched, at, self.next_offset, bool(self.appended), most_bytes, most_records, check_crcs)

    def raws(self) -> list[bytes]:
        """As in WireBatch: a copy, so that nothing holds the fetch."""
        return [bytes(self._fetched[begin:end]) for begin, end in self._stretches]


def plain_batches(
    fetched: memoryview,
    at: int,
    next_offset: int,
    appended: bool,
    most_bytes: int,
    most_records: int,
    check_crcs: bool,
) -> PlainBatches | None:
    """As Native.plain_batches, which gives the same."""
    stop, batches, records, leader_epoch = min(at + most_bytes, len(fetched)), 0, 0, 0
    wanted = APPENDED if appended else 0
    while at + SHORTEST <= stop:
        base, length, epoch, magic, crc, attributes, last_delta, _, _, _, _, _, count = unpack_header(fetched, at)
        end = at + OVERHEAD + length
        if (
            not at + SHORTEST <= end <= stop
            or magic != MAGIC
            or attributes & (CODEC | APPENDED | CONTROL) != wanted
            or base < next_offset
            or last_delta < 0
            or not 0 < count <= most_records - records
            or (check_crcs and calc_crc32c(fetched[at + CHECKED_FROM : end]) != crc)
        ):
            break
        batches, records, leader_epoch = batches + 1, records + count, epoch
        at, next_offset = end, base + last_delta + 1
    return (at, batches, records, next_offset, leader_epoch) if batches else None
