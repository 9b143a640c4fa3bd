"""Partitioners: to which partition the producers of the input send a record key, by the names of kafka.partitioner.

Producers choose the partition from the bytes of the record key. They do not all choose alike.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeAlias
from zlib import crc32

from sfm_stream.errors import UsageError
from sfm_stream.types import KeyValue
from sfm_stream.wire.keys import encode_key

Partitioner: TypeAlias = Callable[[bytes, int], int]
"""(record key, number of partitions) to the partition, from 0."""

_MASK32 = 0xFFFFFFFF
_MURMUR_SEED, _MURMUR_FACTOR = 0x9747B28C, 0x5BD1E995


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
