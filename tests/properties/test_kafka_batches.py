"""Batches of Kafka as columns: what was put in comes out, and nothing comes out of what is broken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from zlib import crc32

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.util import calc_crc32c as crc32c
from support.wire_batches import apart, stored

from sfm_stream.errors import StateError
from sfm_stream.transport.kafka.endpoints import Endpoints
from sfm_stream.transport.kafka.kafka_python.batches import KafkaBatch, OldBatch
from sfm_stream.transport.kafka.kafka_python.hooks.whole_batches import WholeBatches
from sfm_stream.types import NO_TIME

HEADER = DefaultRecordBatch.HEADER_STRUCT
CODECS = range(5)
STAMPS = st.integers(-1, 1 << 42)
BYTES = st.none() | st.binary(max_size=300)
RECORDS = st.lists(
    st.tuples(
        STAMPS, BYTES, BYTES, st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=2)
    ),
    min_size=1,
    max_size=150,
)
Row = tuple[int, int, bytes | None, bytes | None]
"""Offset, arrival, key, value."""


def built(records, codec=0, deltas=None, base=0, append_ms=None) -> bytes:
    """The bytes of a batch of format 2, as a broker would store it."""
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 30)
    deltas = range(len(records)) if deltas is None else deltas
    for delta, (stamp, key, value, headers) in zip(deltas, records, strict=True):
        builder.append(delta, stamp, key, value, headers)
    raw = bytearray(builder.build())
    fields = list(HEADER.unpack_from(raw))
    fields[0] = base
    if append_ms is not None:
        fields[5], fields[8] = fields[5] | 0x08, append_ms
    HEADER.pack_into(raw, 0, *fields)
    return bytes(raw)


def rows_of(batch: KafkaBatch) -> list[Row]:
    arrivals = batch.arrivals()
    assert len(arrivals) == batch.count
    return list(zip(batch.offsets().tolist(), arrivals.tolist(), batch.keys(), batch.values(), strict=True))


def read(raw: bytes, first: int = 0) -> list[Row]:
    return rows_of(KafkaBatch(0, first, 1 << 40, [raw]))


@settings(max_examples=150)
@given(st.data(), RECORDS, st.sampled_from(CODECS), st.integers(0, 1 << 40), st.none() | st.integers(0, 1 << 42))
def test_what_was_put_in_comes_out_from_any_offset_on(data, records, codec, base, append_ms):
    """Of any compression and time stamp, with gaps that compaction left, and begun in the middle."""
    size = len(records)
    kept = data.draw(st.sets(st.integers(0, 2 * size), min_size=size, max_size=size) | st.just(set(range(size))))
    deltas = sorted(kept)
    first = data.draw(st.integers(base - 2, base + 2 * size + 2))
    raw = built(records, codec, deltas, base, append_ms)
    wanted = [
        (base + delta, max(stamp, NO_TIME) if append_ms is None else append_ms, key, value)
        for delta, (stamp, key, value, _) in zip(deltas, records, strict=True)
        if base + delta >= first
    ]
    assert read(raw, first) == wanted


def naive(raw: bytes) -> list[Row] | None:
    """The records of an uncompressed batch read byte by byte, by the definition; None where it is broken."""
    base, _, _, _, _, attributes, last_delta, first_ms, max_ms, _, _, _, count = HEADER.unpack_from(raw)
    data, at = raw[HEADER.size :], 0

    def varint() -> int:
        nonlocal at
        number = 0
        for place in range(10):
            byte = data[at]
            at += 1
            number |= (byte & 127) << 7 * place
            if byte < 128:
                if number >> 64:
                    raise ValueError
                return (number >> 1) ^ -(number & 1)
        raise ValueError

    def field(end: int) -> bytes | None:
        nonlocal at
        length = varint()
        if length < 0:
            return None
        at += length
        if at >= end:  # the number of headers is still to come
            raise ValueError
        return data[at - length : at]

    rows: list[Row] = []
    try:
        for number in range(count):
            length = varint()
            end = at + length
            if length < 0 or end > len(data):
                raise ValueError
            at += 1
            arrival, offset = first_ms + varint(), base + varint()
            if count == last_delta + 1:
                offset = base + number
            key, value = field(end), field(end)
            if at >= end:
                raise ValueError
            arrival = max_ms if attributes & 0x08 else max((arrival + (1 << 63)) % (1 << 64) - (1 << 63), NO_TIME)
            rows.append((offset, arrival, key, value))
            at = end
        if count < 0 or at != len(data):
            raise ValueError
    except (IndexError, ValueError):
        return None
    return rows


def changed(raw: bytes, at: int, new: bytes) -> bytes:
    at = HEADER.size + at % (len(raw) - HEADER.size)
    return raw[:at] + new + raw[at + len(new) :]


HUGE = b"\xfe" + b"\xff" * 8 + b"\x01"
"""The largest length there is: added to a position it is a negative number of 64 bits."""


@settings(max_examples=600)
@given(RECORDS, st.integers(0, 1 << 30), st.sampled_from([HUGE, b"\xff" * 10]) | st.binary(min_size=1, max_size=10))
@example([(0, b"k", b"v", [])], 4, HUGE)
@example([(0, b"k" * 20, b"v" * 20, [])] * 60, 4, HUGE)
@example([(0, b"k" * 20, b"v" * 20, [])] * 60, 2, b"\xff" * 9 + b"\x02")
@example([(0, b"k" * 20, b"v" * 20, [])], 2, b"\xff" * 9 + b"\x02")
@example([(0, b"k" * 20, b"v" * 20, [])] * 60, 0, HUGE)
@example([(0, b"k" * 20, b"v" * 20, [])] * 60, 25, HUGE)
# A value that takes the byte behind it, in which the number of headers is.
@example([(0, b"k" * 20, b"v" * 20, [])] * 60, 25, b"\x2a")
@example([(0, b"k" * 20, b"v" * 20, [])], 25, b"\x2a")
def test_of_changed_bytes_nothing_comes_out_but_what_they_say(records, at, new):
    """Either the structure still holds, and the columns are what a reader of single bytes finds, or it is refused."""
    raw = changed(built(records), at, new)
    wanted = naive(raw)
    try:
        found = read(raw)
    except CorruptRecordError:
        found = None
    if wanted is None or all(-(1 << 62) < row[0] < 1 << 62 for row in wanted):
        assert found == wanted


@settings(max_examples=200)
@given(st.data(), RECORDS, st.sampled_from(CODECS))
def test_a_truncated_batch_is_refused(data, records, codec):
    """Cut off anywhere: in the header, in a record, or between two."""
    raw = built(records, codec)
    with pytest.raises(CorruptRecordError):
        read(raw[: data.draw(st.integers(0, len(raw) - 1))])


@settings(max_examples=400)
@given(RECORDS, st.sampled_from(CODECS), st.integers(0, 1 << 30), st.binary(min_size=1, max_size=4))
def test_changed_bytes_of_a_compressed_batch_raise_no_other_error(records, codec, at, new):
    raw = changed(built(records, codec), at, new)
    with suppress(CorruptRecordError):
        assert len(read(raw)) == len(records)


@settings(max_examples=50)
@given(RECORDS, st.integers(-5, 200).filter(bool))
def test_a_wrong_number_of_records_is_refused(records, more):
    raw = bytearray(built(records))
    fields = list(HEADER.unpack_from(raw))
    fields[12] += more
    HEADER.pack_into(raw, 0, *fields)
    with pytest.raises(CorruptRecordError):
        read(bytes(raw))


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_compression_is_refused(codec):
    raw = bytearray(built([(0, b"k", b"v", [])]))
    raw[22] |= codec
    with pytest.raises(CorruptRecordError, match="compression"):
        read(bytes(raw))


def unpacked(raw: bytes, first: int) -> list[KafkaBatch]:
    """What our part of the fetcher makes of fetched bytes."""
    return list(part_of([raw], first, 0, partition=3)[1])


def part_of(raws, first, most_bytes, partition=0) -> tuple[WholeBatches, Iterator[KafkaBatch]]:
    """Our part of the fetcher for these batches, and what it yields."""
    part = WholeBatches.__new__(WholeBatches)
    part.fetch_offset, part.next_fetch_offset, part.most_bytes = first, first, most_bytes
    part.check_crcs, part.isolation_level, part.leader_epoch = True, 1, -1
    part.aborted_producer_ids, part.aborted_transactions = set(), ()
    part.records_read = part.bytes_read = 0
    part.drain = lambda: None
    return part, part._unpack_records(TopicPartition("t", partition), MemoryRecords(b"".join(raws)), None, None)


@settings(max_examples=100)
@given(
    st.data(),
    st.sampled_from([0, 1]),
    st.lists(st.tuples(st.integers(0, 1 << 42), BYTES, BYTES), min_size=1, max_size=30),
    st.sampled_from([0, 1, 2]),
)
def test_batches_of_the_formats_before_are_read_too(data, magic, records, codec):
    """From any offset on; format 0 has no time stamps."""
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 30)
    for offset, (stamp, key, value) in enumerate(records):
        builder.append(offset, stamp, key, value)
    first = data.draw(st.integers(0, len(records) - 1))
    found = unpacked(bytes(builder.build()), first)
    assert all(isinstance(batch, OldBatch) and batch.partition == 3 for batch in found)
    wanted = [(n, s if magic else NO_TIME, k, v) for n, (s, k, v) in enumerate(records) if n >= first]
    assert [row for batch in found for row in rows_of(batch)] == wanted
    assert (found[0].first, found[-1].next_offset) == (first, len(records))


def test_a_wrong_checksum_is_refused_before_anything_is_read():
    raw = bytearray(built([(0, b"k", b"v", [])]))
    raw[-2] ^= 1
    with pytest.raises(CorruptRecordError, match="offset 0: checksum"):
        unpacked(bytes(raw), 0)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("at", [8, 11, 16])
def test_a_wrong_length_or_format_is_refused_though_no_checksum_covers_it(magic, at):
    """A byte of the length, or the format. A length beyond what is fetched only says that more is to come."""
    before, last = (
        format_2(0, [(5, value)], False) if magic == 2 else old_bytes(magic, 0, [(5, value)], False)
        for value in (b"before", b"last")
    )
    for byte in range(256):
        raw = bytearray((1).to_bytes(8, "big") + last[8:])
        raw[at] = byte
        found: list[Row] = []
        try:
            found.extend(row for batch in part_of([before, bytes(raw)], 0, 1 << 20)[1] for row in rows_of(batch))
            outcome = "taken" if len(found) == 2 else "not whole yet"
        except CorruptRecordError as error:
            outcome = str(error)
        longer = at != 16 and last[at] < byte < (128 if at == 8 else 256)
        wanted = "taken" if byte == last[at] else "not whole yet" if longer else "t, partition 0, offset 1: "
        assert wanted in outcome
        assert found[0][3] == b"before"


# Whose clock stamped a batch, and what of that is counted


def old_bytes(magic: int, codec: int, records: list[tuple[int, bytes]], appended: bool) -> bytes:
    """A message set of a format before 2; a compressed one is a message that wraps the others and speaks for them."""
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 30)
    for offset, (stamp, value) in enumerate(records):
        builder.append(offset, stamp, b"k", value)
    raw = bytearray(builder.build())
    at = 0
    while appended and at < len(raw):
        length = int.from_bytes(raw[at + 8 : at + 12], "big")
        raw[at + 17] |= 0x08
        raw[at + 12 : at + 16] = crc32(raw[at + 16 : at + 12 + length]).to_bytes(4, "big")
        at += 12 + length
    return bytes(raw)


def format_2(codec: int, records: list[tuple[int, bytes]], appended: bool) -> bytes:
    rows = [(stamp, b"k", value, []) for stamp, value in records]
    raw = bytearray(built(rows, codec, append_ms=7 if appended else None))
    raw[17:21] = crc32c(bytes(raw[21:])).to_bytes(4, "big")
    return bytes(raw)


STAMPED = st.lists(st.tuples(st.integers(0, 1 << 42), st.binary(max_size=20)), min_size=1, max_size=60)


@settings(max_examples=150)
@given(STAMPED, st.sampled_from([0, 1, 2]), st.sampled_from([0, 1, 2]), st.booleans())
def test_each_batch_says_whose_clock_stamped_it_before_and_after_it_is_read(records, magic, codec, appended):
    raw = format_2(codec, records, appended) if magic == 2 else old_bytes(magic, codec, records, appended)
    found = unpacked(raw, 0)
    said = "" if magic == 0 else "LogAppendTime" if appended else "CreateTime"
    assert {batch.timestamp_type for batch in found} == {said}
    assert sum(batch.count for batch in found) == len(records)
    assert {batch.timestamp_type for batch in found} == {said}


CLOCKS = [
    # kafka.timestamps, format, stamped by the broker, taken
    ("log_append_time", 2, True, True),
    ("log_append_time", 2, False, False),
    ("log_append_time", 1, True, True),
    ("log_append_time", 1, False, False),
    ("log_append_time", 0, False, False),
    ("create_time", 2, True, False),
    ("create_time", 2, False, True),
    ("create_time", 1, True, False),
    ("create_time", 1, False, True),
    ("create_time", 0, False, True),
    ("", 2, True, True),
    ("", 2, False, True),
    ("", 0, False, True),
]


@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize(("timestamps", "magic", "appended", "taken"), CLOCKS)
def test_a_batch_of_another_clock_than_the_configuration_says_is_refused(timestamps, magic, appended, taken, codec):
    """With kafka.timestamps left open, as of topics of the pipeline itself, any is taken."""
    records = [(5, b"a"), (6, b"b")]
    raw = format_2(codec, records, appended) if magic == 2 else old_bytes(magic, codec, records, appended)
    endpoints = Endpoints("in", "group", "worker", "ledger", {}, timestamps=timestamps)
    if taken:
        endpoints.require_clock(unpacked(raw, 0))
        return
    with pytest.raises(StateError) as refused:
        endpoints.require_clock(unpacked(raw, 0))
    line = str(refused.value)
    assert line.startswith("topic in, partition 3, batch at offset 0: it")
    stamped = "its time stamps are LogAppendTime" if appended else "its time stamps are CreateTime"
    assert (stamped if magic else "it has no time stamps") in line
    assert f"kafka.timestamps is {timestamps}" in line
    assert "raise pipeline.epoch and set window.start to a window border that is still to come" in line


def test_the_first_batch_of_another_clock_is_named():
    batches = [batch for kind in (True, True, False) for batch in unpacked(format_2(0, [(5, b"a")], kind), 0)]
    for offset, batch in enumerate(batches):
        batch.first = offset
    with pytest.raises(StateError, match="batch at offset 2"):
        Endpoints("in", "group", "worker", "ledger", {}, timestamps="log_append_time").require_clock(batches)


# Batches that are handed on together

FIELD = (
    st.none()
    | st.binary(max_size=20)
    | st.builds(lambda text, times: text * times, st.binary(max_size=2), st.integers(0, 60))
)
"""The client compresses no batch that would be larger for it."""
ALIKE = [(number, b"k" * 40, b"v" * 40, []) for number in range(4)]
SEVERAL = st.lists(
    st.tuples(
        st.lists(st.tuples(STAMPS, FIELD, FIELD, st.just([])), min_size=1, max_size=8),
        st.sampled_from(CODECS),
        st.integers(0, 3),
        st.booleans(),
    ),
    min_size=1,
    max_size=30,
)


def laid_out(several) -> list[bytes]:
    """Batches with their check sums, one behind the other in the log; some with a gap behind each record or batch."""
    raws, base = [], 0
    for records, codec, gap, appended in several:
        deltas = [number * (1 + gap % 2) for number in range(len(records))]
        raw = bytearray(built(records, codec, deltas, base, 7 + base if appended else None))
        raw[17:21] = crc32c(bytes(raw[21:])).to_bytes(4, "big")
        raws.append(bytes(raw))
        base += deltas[-1] + 1 + gap
    return raws


def fetched(raws, first, most_bytes, hidden=()) -> list[KafkaBatch]:
    """What our part of the fetcher makes of them. hidden: places of batches that become those of a control record."""
    changed_raws = []
    for place, raw in enumerate(raws):
        head = bytearray(raw)
        if place in hidden:
            head[22] |= 0x20
            head[17:21] = crc32c(bytes(head[21:])).to_bytes(4, "big")
        changed_raws.append(bytes(head))
    found = []
    part, batches = part_of(changed_raws, first, most_bytes)
    for batch in batches:
        assert part.next_fetch_offset == batch.next_offset, "the position of the consumer is behind what it was given"
        found.append(batch)
    assert part.records_read >= sum(batch.count for batch in found)
    return found


@settings(max_examples=200)
@given(SEVERAL, st.integers(0, 200), st.sampled_from([0, 1, 300, 5_000, 1 << 20]), st.sets(st.integers(0, 29)))
@example([(ALIKE, 0, 0, False)] * 5, 0, 1 << 20, {2})
def test_joined_batches_hold_what_each_holds_by_itself(several, first, most_bytes, hidden):
    """Of every compression, both clocks, with gaps, control batches in between, and begun anywhere."""
    raws = laid_out(several)
    wanted = [row for place, raw in enumerate(raws) if place not in hidden for row in read(raw) if row[0] >= first]
    found = fetched(raws, first, most_bytes, hidden)
    assert [row for batch in found for row in rows_of(batch)] == wanted
    for batch in found:
        offsets = batch.offsets().tolist()
        assert not offsets or batch.first <= offsets[0] <= offsets[-1] < batch.next_offset
    assert [batch.next_offset for batch in found] == sorted({batch.next_offset for batch in found})


@settings(max_examples=100)
@given(SEVERAL, st.sampled_from([0, 300, 5_000, 1 << 20]))
def test_what_is_joined_is_bounded_and_of_one_clock(several, most_bytes):
    raws = laid_out(several)
    found = list(part_of(raws, 0, most_bytes)[1])
    assert [raw for batch in found for raw in apart(batch.raws)] == raws
    assert sum(batch.batches for batch in found) == len(raws)
    for batch in found:
        assert batch.batches == len(apart(batch.raws))
        assert len({raw[22] & 0x08 for raw in apart(batch.raws)}) == 1
        assert batch.batches == 1 or sum(map(len, batch.raws)) <= most_bytes
    for one, other in pairwise(found):
        together = apart(one.raws) + apart(other.raws)[:1]
        assert sum(map(len, together)) > most_bytes or len({raw[22] & 0x08 for raw in together}) == 2


@settings(max_examples=100)
@given(SEVERAL, st.integers(0, 29), st.integers(0, 1 << 30))
def test_the_broken_one_of_joined_batches_is_named_and_what_lies_before_it_is_handed_on(several, place, at):
    """A wrong check sum is found when batches are taken apart; broken records when they are looked into."""
    raws = laid_out(several)
    place %= len(raws)
    base = HEADER.unpack_from(raws[place])[0]
    torn = bytearray(raws[place])
    torn[-1 - at % (len(torn) - HEADER.size)] ^= 1
    handed_on = []
    with pytest.raises(CorruptRecordError, match=f"offset {base}: checksum"):
        handed_on.extend(part_of([*raws[:place], bytes(torn), *raws[place + 1 :]], 0, 1 << 20)[1])
    assert [raw for batch in handed_on for raw in apart(batch.raws)] == raws[:place]
    cut = raws[place][:-1]
    with pytest.raises(CorruptRecordError, match=f"batch at offset {base}: "):
        KafkaBatch(0, 0, 1 << 40, [*raws[:place], cut, *raws[place + 1 :]]).offsets()
    behind_each_other = [*raws[:place], stored(bytes(3), 8, base), *raws[place + 1 :]]  # no records, and eight are said
    with pytest.raises(CorruptRecordError, match=f"batch at offset {base}: broken"):
        KafkaBatch(0, 0, 1 << 40, [b"".join(behind_each_other)]).offsets()


@settings(max_examples=100)
@given(SEVERAL)
@example([(ALIKE, codec, 0, False) for codec in CODECS])
@example([(ALIKE, 0, 0, True), (ALIKE, 0, 0, False)])
def test_batches_of_any_clock_and_compression_can_be_read_together(several):
    raws = laid_out(several)
    if several[0][0] is ALIKE:
        assert [raw[22] & 7 for raw in raws] == [codec for _, codec, _, _ in several]
    wanted = [row for raw in raws for row in read(raw)]
    for stretches in (raws, [b"".join(raws)], [b"".join(raws[:2]), *raws[2:]]):
        assert rows_of(KafkaBatch(0, 0, 1 << 40, stretches)) == wanted


@pytest.mark.parametrize(("short", "together"), [(0, [2, 1]), (1, [1, 1, 1])])
def test_what_is_joined_fills_the_bound_and_not_a_byte_more(short, together, kernel):
    raws = laid_out([([(0, b"k", b"v", [])], 0, 0, False)] * 3)
    assert [batch.batches for batch in part_of(raws, 0, 2 * len(raws[0]) - short)[1]] == together


@pytest.mark.parametrize(
    ("counts", "together"), [([3_000] * 5, [2, 2, 1]), ([4_096, 4_096, 1], [2, 1]), ([9_000, 1], [1, 1])]
)
def test_what_is_joined_has_a_bounded_number_of_records(counts, together, kernel):
    """However small they are; a batch that has more by itself comes alone. Nothing but the headers is looked at."""
    raws = []
    for place, count in enumerate(counts):
        raw = bytearray(built([(0, b"k", b"v", [])], base=10_000 * place))
        fields = list(HEADER.unpack_from(raw))
        fields[6], fields[12] = count - 1, count
        HEADER.pack_into(raw, 0, *fields)
        raw[17:21] = crc32c(bytes(raw[21:])).to_bytes(4, "big")
        raws.append(bytes(raw))
    assert [batch.batches for batch in part_of(raws, 0, 1 << 20)[1]] == together


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_joined_is_bounded_when_it_is_decompressed_too(codec, kernel):
    """A few KB stand for 6 MiB each, where they are compressed: two of them fit into 16 MiB, three do not."""
    large = [(5, b"k", bytes(6 << 20), [])]
    batches = fetched(laid_out([(large, codec, 0, False)] * 5 + [(ALIKE, codec, 0, False)] * 9), 0, 1 << 30)
    assert [batch.batches for batch in batches] == [2, 2, 10]
    for batch in batches:
        assert batch.unpacked_bytes >= sum(len(value or b"") for value in batch.values())
