"""Which partition a producer sends a record key to, and which events are not in the partition of their key.

A count is complete only if every event of a counting key is in one partition. Producers choose the partition from the
bytes of the record key. They do not all choose alike.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import UsageError
from sfm_stream.events.key_table import KeyTable
from sfm_stream.types import EventColumns, KeyValue, Reason
from sfm_stream.wire.keys import encode_key

Partitioner: TypeAlias = Callable[[bytes, int], int]
"""(record key, number of partitions) to the partition, from 0."""

_MASK32 = 0xFFFFFFFF
_MURMUR_SEED, _MURMUR_FACTOR = 0x9747B28C, 0x5BD1E995
_UNKNOWN, _HERE, _ELSEWHERE = -1, 0, 1


def murmur2(data: bytes) -> int:
    """32-bit MurmurHash2 under the seed of the Kafka clients, unsigned (Java shows the same bits as a signed int)."""
    digest = _MURMUR_SEED ^ len(data)
    whole = len(data) & ~3
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        word = word * _MURMUR_FACTOR & _MASK32
        digest = (digest * _MURMUR_FACTOR ^ (word ^ word >> 24) * _MURMUR_FACTOR) & _MASK32
    if whole < len(data):
        digest = (digest ^ int.from_bytes(data[whole:], "little")) * _MURMUR_FACTOR & _MASK32
    digest = (digest ^ digest >> 13) * _MURMUR_FACTOR & _MASK32
    return digest ^ digest >> 15


def murmur2_partition(key: bytes, partitions: int) -> int:
    """The partition by murmur2 without its sign bit: the Java client's, kafka-python's, librdkafka's murmur2(_random).

    The empty key is hashed like any other. A null key is not for a partitioner of keys: librdkafka's `murmur2` puts it
    where the empty key goes; `murmur2_random`, the Java client and kafka-python choose a partition without it.
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def crc32_partition(key: bytes, partitions: int) -> int:
    """The partition by the unsigned CRC-32: librdkafka's `consistent`, and `consistent_random`, its default.

    `consistent` puts empty and null keys into partition 0, as this does; `consistent_random` chooses a partition for
    either without regard to the key.
    """
    return crc32(key) % partitions


PARTITIONERS: dict[str, Partitioner] = {
    "murmur2": murmur2_partition,
    "murmur2_random": murmur2_partition,
    "crc32": crc32_partition,
}
"""By their names in the configuration. murmur2 and murmur2_random differ for null keys only."""


def partition_key(key: KeyValue) -> bytes:
    """The record key that a producer must send with the events of a counting key.

    One text field: its UTF-8. One integer field: its decimal ASCII digits, with "-" before a negative one. Otherwise,
    for several fields, for none and for bytes: the canonical bytes of encode_key. Raises UsageError for what
    encode_key cannot hold, text with a lone surrogate among it.
    """
    if isinstance(key, str):
        try:
            return key.encode()
        except UnicodeEncodeError:
            pass  # and raise outside: the error holds the key
        raise UsageError("key: text with a lone surrogate has no UTF-8")
    return b"%d" % key if isinstance(key, int) else encode_key(key)


class Placement:
    """Which keys one partition owns, and which rows of its columns have a key that belongs to another partition.

    partition: the one that is read, of `partitions`. It must be given every EventColumns of the partition, in order:
    only so does it notice that a key id was freed and belongs to another key now. Raises UsageError for a partition
    that is not one of them.
    """

    __slots__ = ("_owner_of", "_partition", "_partitioner", "_partitions")

    def __init__(self, partitioner: Partitioner, partition: int, partitions: int) -> None:
        if not 0 <= partition < partitions:
            raise UsageError(f"partition: {partition} is not one of {partitions}")
        self._partitioner, self._partition, self._partitions = partitioner, partition, partitions
        self._owner_of = np.full(64, _UNKNOWN, np.int8)
        """Key id to whether its key belongs here, elsewhere, or was not asked for yet."""

    def owns(self, key: KeyValue) -> bool:
        """Whether a counting key belongs to this partition. Raises UsageError as partition_key does."""
        return self._partitioner(partition_key(key), self._partitions) == self._partition

    def judged(self, columns: EventColumns, keys: KeyTable) -> EventColumns:
        """The columns, with rows marked whose key belongs to another partition. Call it as misplaced()."""
        wrong = self.misplaced(columns, keys) & (columns.reasons == Reason.OK)
        if not wrong.any():
            return columns
        return replace(columns, reasons=np.where(wrong, np.uint8(Reason.KEY_MISPLACED), columns.reasons))

    def misplaced(self, columns: EventColumns, keys: KeyTable) -> NDArray[np.bool_]:
        """Shape (rows,): True where the row's key belongs to another partition; False for a row without a key.

        Call it before `keys` frees an id of these columns. A partitioner is asked once for each key, not for each row.
        """
        key_ids = columns.key_ids
        self._reach(max(int(key_ids.max(initial=0)), max(columns.new_keys, default=0)))
        # A new id may be an old one that another key has now. A fixed table never says that an id is new.
        self._owner_of[list(columns.new_keys)] = _UNKNOWN
        has_key = key_ids >= 0
        owners = np.where(has_key, self._owner_of[key_ids], np.int8(_HERE))
        unseen = np.unique(key_ids[owners == _UNKNOWN])
        if unseen.size:
            owned = (self.owns(keys[key_id]) for key_id in unseen.tolist())
            self._owner_of[unseen] = [_HERE if mine else _ELSEWHERE for mine in owned]
            owners = self._owner_of[key_ids]
        return np.asarray((owners == _ELSEWHERE) & has_key)

    def _reach(self, key_id: int) -> None:
        """Make room for ids up to this one. Room at least doubles, so that its growth costs little in total."""
        have = len(self._owner_of)
        if key_id >= have:
            more = np.full(max(have, key_id + 1 - have), _UNKNOWN, np.int8)
            self._owner_of = np.concatenate([self._owner_of, more])
