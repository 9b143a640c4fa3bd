"""The bytes of the records of a batch: those that the client writes itself, cut where a batch is full."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder

from sfm_stream.transport.kafka.kafka_python.batch_body import HEADER_BYTES, batches_of, body, varint
from sfm_stream.types import Record

sizes = st.sampled_from([0, 1, 62, 63, 64, 65, 8190, 8192, 70_000])
times = st.one_of(st.integers(0, (1 << 62)), st.integers(1_000, 1_100))
logs = st.lists(
    st.builds(
        lambda topic, partition, key, value, at: Record(topic, partition, b"k" * key, b"v" * value, at),
        st.sampled_from(["outbox", "ledger"]),
        st.integers(0, 2),
        st.integers(0, 80),
        sizes,
        times,
    ),
    max_size=12,
)


def by_the_client(records: list[Record]) -> bytes:
    """A whole batch as the client makes it, header and all."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 30)
    for place, record in enumerate(records):
        assert builder.append(place, record.timestamp_ms, record.key, record.value, []) is not None
    return bytes(builder.build())


@given(logs.filter(bool))
@settings(max_examples=150)
def test_they_are_the_bytes_that_the_client_writes(records: list[Record]) -> None:
    assert body(records) == bytes(HEADER_BYTES) + by_the_client(records)[HEADER_BYTES:]


def test_a_batch_of_many_records_too() -> None:
    records = [Record("outbox", 0, b"%d" % number, b"v" * (number % 300), 5 * number) for number in range(20_000)]
    assert body(records) == bytes(HEADER_BYTES) + by_the_client(records)[HEADER_BYTES:]


@pytest.mark.parametrize("number", [0, 1, -1, 63, 64, -64, -65, 8191, 8192, (1 << 63) - 1, -(1 << 63)])
def test_a_number_is_zigzag_and_of_seven_bits_a_byte(number: int) -> None:
    written = varint(number)
    assert all(byte & 0x80 for byte in written[:-1])
    assert not written[-1] & 0x80
    value = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(written))
    assert (value >> 1) ^ -(value & 1) == number


@given(logs, st.integers(1, 200_000))
@settings(max_examples=200)
def test_batches_hold_all_records_in_order_and_none_is_too_large(records: list[Record], most_bytes: int) -> None:
    batches = list(batches_of(records, most_bytes))
    assert all(batches)
    for place in {(record.topic, record.partition) for record in records}:
        mine = [batch for batch in batches if (batch[0].topic, batch[0].partition) == place]
        assert [r for batch in mine for r in batch] == [r for r in records if (r.topic, r.partition) == place]
        for one, following in zip(mine, [*mine[1:], None], strict=True):
            assert len(one) == 1 or HEADER_BYTES + len(body(one)) <= most_bytes
            if following is not None:
                together = HEADER_BYTES + len(body([*one, following[0]]))
                assert together + 40 * (len(one) + 1) > most_bytes, "a batch ends where there is no room"
    assert sum(map(len, batches)) == len(records)


def test_each_batch_has_room_for_its_own_header() -> None:
    """Two records that fill a batch but for its header lie in two, wherever in the log they are."""
    records = [Record("outbox", 0, b"key", bytes(size - 3 - 35), 0) for size in (900, 500, 500)]
    assert [len(batch) for batch in batches_of(records, 1_000)] == [1, 1, 1]
    assert HEADER_BYTES + len(body(records[1:])) > 1_000
