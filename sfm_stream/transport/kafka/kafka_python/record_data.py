"""The bytes of batches of message format 2 as columns: all batches of a poll at once, however small each of them is.

Where a record begins is known only from the length of the one before, so a loop goes from length to length; everything
else is read from all records at once, which costs a fraction of it. A few records are read one by one.

A record: length, attributes (one byte), time delta, offset delta, key length, key, value length, value, headers.
Lengths and deltas are zigzag varints; length -1 is null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from struct import Struct
from typing import Any, TypeAlias

import numpy as np
from kafka.errors import CorruptRecordError
from numpy.typing import NDArray

from sfm_stream.transport.kafka.kafka_python.batch_runs import APPENDED, CODEC, LENGTH_AT, OVERHEAD
from sfm_stream.transport.kafka.kafka_python.codecs import CODECS, decompressed
from sfm_stream.types import NO_TIME
from sfm_stream.units import MAX_BATCH_BYTES

Ints: TypeAlias = NDArray[np.int64]
Texts: TypeAlias = list[bytes | None]
Spans: TypeAlias = "zip[tuple[int, int]]"
Batches: TypeAlias = "zip[tuple[tuple[int, int], int]]"
"""Of each batch [begin, end) of its records, and how many they are."""

_HEADER = np.dtype(
    [
        ("base", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_delta", ">i4"),
        ("first_time", ">i8"),
        ("max_time", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
"""What a batch begins with. last_delta: of offsets."""
_length = Struct(">i").unpack_from
_LEAST_LENGTH = _HEADER.itemsize - OVERHEAD
_FEW = 48
"""Up to so many records the loop over them is quicker than the calls that read all at once."""
_PADDING = bytes(16)


class Columns:
    """Offsets and arrivals (ms), shape (n,), and what gives keys and values when they are asked for."""

    __slots__ = ("arrivals", "keys", "offsets", "values")

    def __init__(self, offsets: Ints, arrivals: Ints, keys: Callable[[], Texts], values: Callable[[], Texts]) -> None:
        self.offsets, self.arrivals, self.keys, self.values = offsets, arrivals, keys, values


class _Fields:
    """Where the fields of records are: deltas, and [start, end) of keys and values with -1, -1 for null."""

    __slots__ = ("key_ends", "key_starts", "offset_deltas", "time_deltas", "value_ends", "value_starts")

    def __init__(self, times: Ints, offsets: Ints, keys: tuple[Ints, Ints], values: tuple[Ints, Ints]) -> None:
        self.time_deltas, self.offset_deltas = times, offsets
        self.key_starts, self.key_ends = keys
        self.value_starts, self.value_ends = values


def read_batches(raws: Sequence[bytes], first: int) -> Columns:
    """The records of batches that follow each other in the log, from offset `first` on, which is in the first of them.

    raws: as in WireBatch. Raises CorruptRecordError, which names the batch.
    """
    stored, begins = raws[0] if len(raws) == 1 else b"".join(raws), _begins(raws)
    ends = [*begins[1:], len(stored)]
    heads = np.frombuffer(b"".join([stored[begin : begin + _HEADER.itemsize] for begin in begins]), _HEADER)
    attributes, bases, counts = heads["attributes"], _native(heads["base"]), _native(heads["count"])
    if (attributes & CODEC).any():
        data, bodies = _decompressed([stored[begin:end] for begin, end in zip(begins, ends, strict=True)])
    else:
        data, bodies = stored, zip([begin + _HEADER.itemsize for begin in begins], ends, strict=True)
    try:
        fields = _fields(data, bodies, counts)
    except (IndexError, ValueError) as error:
        if len(begins) == 1:
            raise CorruptRecordError(f"batch at offset {bases[0]}: broken records") from error
        for begin, end in zip(begins, ends, strict=True):  # one of them is broken by itself
            read_batches([stored[begin:end]], first)
        raise
    # Compaction may have taken some; without a gap the deltas need not be looked at.
    gaps = counts != _native(heads["last_delta"]) + 1
    offsets = np.arange(len(fields.time_deltas)) + np.repeat(bases - (np.cumsum(counts) - counts), counts)
    if gaps.any():
        offsets = np.where(np.repeat(gaps, counts), fields.offset_deltas + np.repeat(bases, counts), offsets)
    arrivals = np.maximum(fields.time_deltas + np.repeat(_native(heads["first_time"]), counts), NO_TIME)
    appended = (attributes & APPENDED).astype(np.bool_)
    if appended.any():
        stamps = np.repeat(_native(heads["max_time"]), counts)
        arrivals = stamps if appended.all() else np.where(np.repeat(appended, counts), stamps, arrivals)
    row = int(np.searchsorted(offsets[: counts[0]], first))
    return Columns(
        offsets[row:],
        arrivals[row:],
        lambda: _cut(data, fields.key_starts[row:], fields.key_ends[row:]),
        lambda: _cut(data, fields.value_starts[row:], fields.value_ends[row:]),
    )


def _native(column: NDArray[Any]) -> Ints:
    """A column of headers, in which the largest byte comes first, as one to reckon with."""
    return column.astype(np.int64)


def _begins(raws: Sequence[bytes]) -> list[int]:
    """Where each batch begins once these are joined. Raises CorruptRecordError."""
    begins: list[int] = []
    behind, add = 0, begins.append
    for raw in raws:
        at, size = 0, len(raw)
        while size - at >= _HEADER.itemsize:
            add(behind + at)
            length = _length(raw, at + LENGTH_AT)[0]
            if not _LEAST_LENGTH <= length <= size - at - OVERHEAD:
                raise CorruptRecordError(f"batch at offset {int.from_bytes(raw[at : at + 8])}: broken records")
            at += OVERHEAD + length
        if at < size or not size:
            raise CorruptRecordError("a batch without the whole of its header")
        behind += size
    return begins


def _decompressed(raws: Sequence[bytes]) -> tuple[bytes, Spans]:
    """What stands behind the header of each batch, decompressed and joined, and where it lies then."""
    data = [_unpacked(raw) for raw in raws]
    ends = list(accumulate(map(len, data)))
    return b"".join(data), zip([0, *ends[:-1]], ends, strict=True)


def _unpacked(raw: bytes) -> bytes:
    """What stands behind the header of a batch, decompressed. Raises CorruptRecordError."""
    head = np.frombuffer(raw, _HEADER, 1)[0]
    codec, data = int(head["attributes"]) & CODEC, raw[_HEADER.itemsize :]
    if not codec:
        return data
    if codec not in CODECS:
        raise CorruptRecordError(f"batch at offset {head['base']}: unknown compression {codec}")
    try:
        return decompressed(codec, data, MAX_BATCH_BYTES)
    except Exception as error:  # each library has errors of its own
        raise CorruptRecordError(f"batch at offset {head['base']}: not decompressed: {type(error).__name__}") from error


def _fields(data: bytes, bodies: Spans, counts: Ints) -> _Fields:
    """bodies, counts: where the records of each batch lie in the data, and how many they are."""
    if (counts < 0).any():
        raise ValueError("a batch with fewer records than none")
    batches = zip(bodies, counts.tolist(), strict=True)
    return _each(data, batches) if counts.sum() <= _FEW else _all(data, _starts(data, batches))


def _cut(data: bytes, starts: Ints, ends: Ints) -> Texts:
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    if int(starts.min(initial=0)) >= 0:
        return [data[start:end] for start, end in pairs]
    return [data[start:end] if start >= 0 else None for start, end in pairs]


def _starts(data: bytes, batches: Batches) -> Ints:
    """Shape (records,): where each record begins, with its length."""
    starts: list[int] = []
    add = starts.append
    for (at, end), count in batches:
        for _ in range(count):
            add(at)
            number = data[at]
            if number < 128:
                at += 1 + (number >> 1)
            elif (second := data[at + 1]) < 128:  # most records are this long
                at += 2 + ((number & 127 | second << 7) >> 1)
            else:
                number, behind = _varint(data, at)
                at = behind + (number >> 1)
        if at != end:
            raise ValueError("the records do not fill the batch")
    return np.array(starts, np.int64)


def _all(data: bytes, starts: Ints) -> _Fields:
    column = np.frombuffer(data + _PADDING, np.uint8)
    lengths, at = _varints(column, starts)
    if (lengths < 0).any():
        raise ValueError("a record of negative length")
    record_ends = at + lengths
    times, at = _varints(column, at + 1)
    offsets, at = _varints(column, at)
    lengths, at = _varints(column, at)
    keys, at = _span(lengths, at, len(data))
    lengths, at = _varints(column, at)
    values, at = _span(lengths, at, len(data))
    if (at >= record_ends).any():  # at least the number of headers follows
        raise ValueError("a field reaches beyond its record")
    return _Fields(times, offsets, keys, values)


def _span(lengths: Ints, at: Ints, size: int) -> tuple[tuple[Ints, Ints], Ints]:
    """((starts, ends), positions behind) of fields of these lengths; a null field has no place."""
    if int(lengths.max()) > size:  # looked at first: the sum below might go round
        raise ValueError("a field longer than the batch")
    ends = at + np.maximum(lengths, 0)
    if int(ends.max()) > size:
        raise ValueError("a field reaches beyond the batch")
    null = lengths < 0
    if null.any():
        return (np.where(null, -1, at), np.where(null, -1, ends)), ends
    return (at, ends), ends


def _varints(column: NDArray[np.uint8], at: Ints) -> tuple[Ints, Ints]:
    """(signed values, positions behind) of the varints that begin at these places."""
    byte = column[at]
    raw = (byte & 127).astype(np.uint64)
    behind = at + 1
    more = np.flatnonzero(byte > 127)
    shift = 7
    while more.size:
        byte = column[behind[more]]
        if shift == 63 and (byte > 1).any():
            raise ValueError("a varint of more than 64 bits")
        raw[more] |= (byte & 127).astype(np.uint64) << np.uint64(shift)
        behind[more] += 1
        more, shift = more[byte > 127], shift + 7
    return (raw >> np.uint64(1)).astype(np.int64) ^ -(raw & np.uint64(1)).astype(np.int64), behind


def _each(data: bytes, batches: Batches) -> _Fields:
    """As _all() of _starts(), record by record."""
    rows: list[tuple[int, ...]] = []
    for (at, batch_end), count in batches:
        for _ in range(count):
            number, behind = _varint(data, at)
            if number & 1:
                raise ValueError("a record of negative length")
            end = behind + (number >> 1)
            time, at = _varint(data, behind + 1)
            offset, at = _varint(data, at)
            number, at = _varint(data, at)
            key = (-1, -1) if number & 1 else (at, at + (number >> 1))
            number, at = _varint(data, max(at, key[1]))
            value = (-1, -1) if number & 1 else (at, at + (number >> 1))
            if not max(at, value[1]) < end <= batch_end:  # at least the number of headers follows
                raise ValueError("a field reaches beyond its record")
            rows.append(((time >> 1) ^ -(time & 1), (offset >> 1) ^ -(offset & 1), *key, *value))
            at = end
        if at != batch_end:
            raise ValueError("the records do not fill the batch")
    columns = np.array(rows, np.int64).reshape(-1, 6).T
    return _Fields(columns[0], columns[1], (columns[2], columns[3]), (columns[4], columns[5]))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(value before it is given its sign, position behind it) of the varint that begins there."""
    number, shift = 0, 0
    while (byte := data[at]) > 127:
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if shift > 63:
            break
    if (number := number | byte << shift) >> 64:
        raise ValueError("a varint of more than 64 bits")
    return number, at + 1
