"""Whole batches of a log with transactions: the records that the client itself gives of it, and the same position."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from hypothesis import example, given, settings
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher
from kafka.protocol.consumer import IsolationLevel
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.util import calc_crc32c as crc32c
from support.both_kernels import KERNELS, chosen

from sfm_stream.transport.kafka.kafka_python.hooks.whole_batches import WholeBatches

PLACE = TopicPartition("t", 0)
HEADER = DefaultRecordBatch.HEADER_STRUCT
LEADER_EPOCH, CONTROL = 2, 0x20
MARKER = Struct(">hh").pack
"""Version of a marker, and 0 where it aborts or 1 where it commits."""


@dataclass(frozen=True)
class Part:
    """One batch of the log. producer: -1 for none. marker: None for records, else whether it aborts."""

    producer: int
    transactional: bool
    records: int
    marker: bool | None = None


@dataclass(frozen=True)
class Aborted:
    """As a broker answers a fetch with it."""

    producer_id: int
    first_offset: int


records = st.builds(Part, st.integers(-1, 2), st.booleans(), st.integers(0, 4))
markers = st.builds(Part, st.integers(0, 2), st.just(True), st.just(1), st.booleans())
logs = st.lists(st.one_of(records, records, markers), min_size=1, max_size=25)


def laid_out(log: list[Part]) -> tuple[list[bytes], list[Aborted]]:
    """The batches one behind the other, and every transaction that is aborted in it."""
    raws, aborted, begun, base = [], [], {}, 0
    for place, part in enumerate(log):
        count = max(part.records, 1)
        builder = DefaultRecordBatchBuilder(2, 0, part.transactional, part.producer, 0, 0, 1 << 20)
        for number in range(count):
            key = b"k%d" % number if part.marker is None else MARKER(0, not part.marker)
            builder.append(number, 1_000 + number, key, b"v%d" % place, [])
        raw = bytearray(builder.build())
        fields = list(HEADER.unpack_from(raw))
        fields[0], fields[LEADER_EPOCH] = base, place // 3
        fields[5] |= 0 if part.marker is None else CONTROL
        if not part.records:  # compaction has taken them, and kept the batch for the sake of its producer
            fields[1], fields[12] = HEADER.size - 12, 0
            raw = raw[: HEADER.size]
        HEADER.pack_into(raw, 0, *fields)
        raw[17:21] = crc32c(bytes(raw[21:])).to_bytes(4, "big")
        raws.append(bytes(raw))
        if part.marker is None and part.transactional and part.producer >= 0:
            begun.setdefault(part.producer, base)
        elif part.marker is not None and (first := begun.pop(part.producer, None)) is not None and part.marker:
            aborted.append(Aborted(part.producer, first))
        base += count
    return raws, aborted


def taken(kind, raws: list[bytes], first: int, aborted: list[Aborted], isolation: int):
    """The part of the fetcher that has read all of it, and what it gave."""
    part = kind(first, PLACE, MemoryRecords(b"".join(raws)), None, None, True, isolation, aborted)
    return part, part.take()


@settings(max_examples=300)
@given(logs, st.integers(0, 40), st.sampled_from([0, 200, 1 << 20]), st.sampled_from(list(IsolationLevel)))
@example([Part(1, True, 2), Part(1, True, 1, True), Part(1, True, 2)], 0, 1 << 20, IsolationLevel.READ_COMMITTED)
@example([Part(1, True, 2), Part(1, False, 2), Part(1, True, 1, True)], 0, 1 << 20, IsolationLevel.READ_COMMITTED)
@example([Part(1, True, 1), Part(1, True, 1, True)], 0, 1 << 20, IsolationLevel.READ_COMMITTED)
@example([Part(0, True, 1), Part(0, True, 1, False)], 0, 1 << 20, IsolationLevel.READ_COMMITTED)
@example([Part(0, True, 0), Part(-1, False, 1), Part(0, True, 1, True)], 0, 1 << 20, IsolationLevel.READ_UNCOMMITTED)
def test_they_hold_the_records_that_the_client_gives_and_end_where_it_does(log, first, most_bytes, isolation):
    raws, aborted = laid_out(log)
    bases = [HEADER.unpack_from(raw)[0] for raw in raws]
    begin = max(place for place, base in enumerate(bases) if base <= first)  # a fetch begins with a whole batch
    kind = type("Ours", (WholeBatches,), {"most_bytes": most_bytes})
    theirs, wanted = taken(Fetcher.PartitionRecords, raws[begin:], first, aborted, isolation)
    for kernel in KERNELS:
        with chosen(kernel):
            ours, batches = taken(kind, raws[begin:], first, aborted, isolation)
        found = [row for batch in batches for row in zip(batch.offsets().tolist(), batch.values(), strict=True)]
        assert found == [(record.offset, record.value) for record in wanted]
        assert ours.next_fetch_offset == theirs.next_fetch_offset
        assert ours.leader_epoch == theirs.leader_epoch
        assert ours.aborted_producer_ids == theirs.aborted_producer_ids
        assert ours.records_read >= len(found)
        assert not ours, "nothing is left of the fetch"
