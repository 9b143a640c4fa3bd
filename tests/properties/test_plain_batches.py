"""Plain batches found in one walk: both kernels find the same, and nobody sees that there was one.

What the client's part of a fetch hands on, where it stands and what it raises is compared with the same without a walk,
which looks at each batch by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.util import calc_crc32c as crc32c
from support.both_kernels import KERNELS, chosen
from support.wire_batches import apart

from sfm_stream import kernels
from sfm_stream.kernels import Kernel, PlainBatches
from sfm_stream.transport.kafka.kafka_python import batch_runs
from sfm_stream.transport.kafka.kafka_python.hooks.whole_batches import WholeBatches

HEADER = DefaultRecordBatch.HEADER_STRUCT
OFFSET, LENGTH, EPOCH, MAGIC, CRC, ATTRIBUTES, LAST_DELTA, _, _, PRODUCER, _, _, COUNT = range(13)
APPENDED, TRANSACTIONAL, CONTROL = 0x08, 0x10, 0x20
MARKER = Struct(">hh").pack
"""Version of a marker, and 0 where it aborts or 1 where it commits."""


def built(records: int = 1, base: int = 0, codec: int = 0, producer: int = -1, marker: bool | None = None) -> bytearray:
    """A batch without its check sum. marker: None for records, else whether it aborts."""
    builder = DefaultRecordBatchBuilder(2, codec, False, producer, 0, 0, 1 << 20)
    for number in range(records):
        key = b"k%d" % number if marker is None else MARKER(0, not marker)
        builder.append(number, 1_000 + number, key, b"v%d" % base * 9, [])
    return changed(builder.build(), {OFFSET: base, EPOCH: base // 7})


def changed(raw: bytes, fields: dict[int, int]) -> bytearray:
    """With these fields in its header."""
    of_header = list(HEADER.unpack_from(raw))
    for place, value in fields.items():
        of_header[place] = value
    head = bytearray(raw)
    HEADER.pack_into(head, 0, *of_header)
    return head


def checked(raw: bytes) -> bytes:
    """With a right check sum."""
    return bytes(changed(raw, {CRC: crc32c(bytes(raw[21:]))}))


# One walk


def walk(kernel: Kernel, fetched: memoryview, *arguments: Any) -> PlainBatches | None:
    with chosen(kernel):
        native = kernels.native()
        return (native or batch_runs).plain_batches(fetched, *arguments)


def walked(
    raws: list[bytes], at=0, next_offset=0, appended=False, most_bytes=1 << 20, most_records=1 << 13, check_crcs=True
) -> PlainBatches | None:
    """What both kernels say of these batches, one behind the other."""
    fetched = memoryview(b"".join(raws))
    found = [
        walk(kernel, fetched, at, next_offset, appended, most_bytes, most_records, check_crcs) for kernel in KERNELS
    ]
    assert found[0] == found[-1]
    return found[0]


@pytest.fixture
def three() -> list[bytes]:
    return [checked(built(2, base)) for base in (70, 72, 80)]


NOT_PLAIN: dict[str, Callable[[bytes], bytes]] = {
    **{f"format {magic}": lambda raw, magic=magic: checked(changed(raw, {MAGIC: magic})) for magic in (-1, 0, 1, 3)},
    **{f"codec {codec}": lambda raw, codec=codec: checked(changed(raw, {ATTRIBUTES: codec})) for codec in range(1, 8)},
    "stamped by the broker": lambda raw: checked(changed(raw, {ATTRIBUTES: APPENDED})),
    "control": lambda raw: checked(changed(raw, {ATTRIBUTES: CONTROL})),
    "control of a transaction": lambda raw: checked(changed(raw, {ATTRIBUTES: CONTROL | TRANSACTIONAL})),
    "no record": lambda raw: checked(changed(raw, {COUNT: 0})),
    "fewer records than none": lambda raw: checked(changed(raw, {COUNT: -1})),
    "ends before it begins": lambda raw: checked(changed(raw, {LAST_DELTA: -1})),
    "in front of the one before": lambda raw: checked(changed(raw, {OFFSET: 71})),
    "a negative offset": lambda raw: checked(changed(raw, {OFFSET: -1})),
    "a wrong check sum": lambda raw: raw[:-1] + b"x",
    "a check sum of something else": lambda raw: bytes(changed(raw, {CRC: 0})),
    "an empty length": lambda raw: bytes(changed(raw, {LENGTH: 0})),
    "a negative length": lambda raw: bytes(changed(raw, {LENGTH: -(1 << 31)})),
    "shorter than a header": lambda raw: bytes(changed(raw, {LENGTH: 48})),
    "longer than all": lambda raw: bytes(changed(raw, {LENGTH: (1 << 31) - 1})),
}


@pytest.mark.parametrize("how", NOT_PLAIN)
def test_a_batch_that_is_not_plain_ends_it(three, how):
    before = (len(three[0]), 1, 2, 72, 10)
    assert walked([three[0], NOT_PLAIN[how](three[1]), three[2]]) == before
    assert walked([NOT_PLAIN[how](three[1]), three[2]], next_offset=72) is None
    if "check sum" not in how:
        assert walked([three[0], NOT_PLAIN[how](three[1]), three[2]], check_crcs=False) == before


@pytest.mark.parametrize(
    "fields", [{}, {ATTRIBUTES: TRANSACTIONAL}, {ATTRIBUTES: 0x40}, {ATTRIBUTES: 0x100}, {PRODUCER: 5}, {LAST_DELTA: 7}]
)
def test_all_that_is_plain_is_taken(three, fields):
    """Also the batches of transactions: who asks knows that none of them is aborted."""
    raws = [three[0], checked(changed(three[1], fields)), three[2]]
    assert walked(raws) == (sum(map(len, raws)), 3, 6, 82, 11)
    assert walked(raws, at=len(raws[0])) == (sum(map(len, raws)), 2, 4, 82, 11)


def test_whose_clock_it_is_has_to_be_the_same(three):
    stamped = [checked(changed(raw, {ATTRIBUTES: APPENDED})) for raw in three]
    assert walked([*stamped, three[0]], appended=True) == (sum(map(len, stamped)), 3, 6, 82, 11)
    assert walked(three, appended=True) is None


def test_bounds_are_filled_and_no_more_is_taken(three):
    all_bytes = sum(map(len, three))
    assert walked(three, most_bytes=all_bytes, most_records=6) == (all_bytes, 3, 6, 82, 11)
    assert walked(three, at=len(three[0]), most_bytes=(1 << 64) - 1) == (all_bytes, 2, 4, 82, 11)
    two = (all_bytes - len(three[2]), 2, 4, 74, 10)
    assert walked(three, most_bytes=all_bytes - 1) == two
    assert walked(three, most_records=5) == two
    assert walked([*three[:2], three[2][:-1]]) == two, "what is not whole yet"
    assert walked(three, most_records=1) is None
    assert walked(three, most_bytes=0) is None
    assert walked(three, next_offset=70) == (all_bytes, 3, 6, 82, 11)
    assert walked(three, next_offset=71) is None
    assert walked(three, at=all_bytes) is walked(three, at=all_bytes + 9) is walked([]) is None


def test_check_sums_are_looked_at_where_that_is_asked_for(three):
    raws = [three[0], NOT_PLAIN["a check sum of something else"](three[1]), three[2]]
    assert walked(raws, check_crcs=False) == (sum(map(len, raws)), 3, 6, 82, 11)


def test_offsets_may_be_as_large_as_they_get(three):
    last = checked(changed(three[0], {OFFSET: (1 << 63) - 1, LAST_DELTA: (1 << 31) - 1}))
    behind = (1 << 63) + (1 << 31) - 1
    assert walked([last]) == (len(last), 1, 2, behind, 10)
    assert walked([last], next_offset=behind) is None


@settings(max_examples=500)
@given(st.data(), st.lists(st.integers(1, 3), min_size=1, max_size=8), st.booleans(), st.booleans())
def test_damage_anywhere_is_the_same_for_both(data, counts, check_crcs, mended):
    """mended: the check sums are right all the same."""
    raws = [built(count, 4 * place) for place, count in enumerate(counts)]
    for raw in raws if data.draw(st.booleans()) else raws[-1:]:
        for _ in range(data.draw(st.integers(0, 2))):
            at = data.draw(st.integers(0, len(raw) - 1) | st.sampled_from([8, 11, 16, 22, 23, 26, 57, 60]))
            raw[at] = data.draw(st.sampled_from([0, 1, 2, 8, 16, 32, 127, 128, 255]))
    stored = [checked(raw) if mended else bytes(raw) for raw in raws]
    stored[-1] = stored[-1][: data.draw(st.integers(0, len(stored[-1]))) or None]
    at = data.draw(st.sampled_from([0, 0, 1, len(stored[0])]))
    most = data.draw(st.sampled_from([1 << 20, 1 << 62, 300, 61]))
    walked(stored, at, data.draw(st.integers(0, 9)), data.draw(st.booleans()), most, most, check_crcs)


def test_what_somebody_else_could_write_to_is_not_read(three):
    if "native" in KERNELS:
        with pytest.raises(ValueError, match="read-only"):
            walk("native", memoryview(bytearray(three[0])), 0, 0, False, 1 << 20, 1 << 13, True)


# The fetch as a whole


@dataclass(frozen=True)
class Part:
    """One batch of the log, and the offsets left out behind it. producer: -1 for none. marker: as in built()."""

    records: int = 1
    gap: int = 0
    codec: int = 0
    attributes: int = 0
    producer: int = -1
    marker: bool | None = None
    spoilt: str = ""
    """A key of NOT_PLAIN."""
    old: bool = False


@dataclass(frozen=True)
class Aborted:
    """As a broker answers a fetch with it."""

    producer_id: int
    first_offset: int


IN_TRANSACTION = Part(producer=1, attributes=TRANSACTIONAL)
plain = st.builds(Part, st.integers(1, 3), st.sampled_from([0, 0, 0, 2]))
stamped = st.builds(Part, st.integers(1, 3), attributes=st.just(APPENDED))
odd = st.one_of(
    st.builds(Part, st.integers(1, 3), codec=st.integers(1, 4)),
    st.builds(Part, st.integers(1, 3), attributes=st.sampled_from([APPENDED, TRANSACTIONAL, CONTROL, 0x40])),
    st.builds(Part, attributes=st.sampled_from([0, TRANSACTIONAL, TRANSACTIONAL]), producer=st.integers(0, 2)),
    st.builds(Part, attributes=st.just(CONTROL | TRANSACTIONAL), producer=st.integers(0, 2), marker=st.booleans()),
    st.builds(Part, spoilt=st.sampled_from(sorted(NOT_PLAIN))),
    st.builds(Part, old=st.just(True)),
)
several = st.one_of(*(st.lists(part, min_size=2, max_size=5) for part in (plain, stamped)))
logs = st.lists(several | odd.map(lambda part: [part]), min_size=2, max_size=12).map(
    lambda parts: [part for some in parts for part in some]
)


def laid_out(log: list[Part]) -> list[bytes]:
    raws, base = [], 0
    for part in log:
        if part.old:
            old = LegacyRecordBatchBuilder(1, 0, 1 << 20)
            old.append(base, 5, b"k", b"old")
            raws.append(bytes(old.build()))
        else:
            raw = built(part.records, base, part.codec, part.producer, part.marker)
            raw = checked(changed(raw, {ATTRIBUTES: raw[22] | part.attributes}))
            raws.append(NOT_PLAIN[part.spoilt](raw) if part.spoilt else raw)
        base += part.records + part.gap
    return raws


def handed_on(fetched: bytes, first: int, most_bytes: int, isolation: int, aborted: list[Aborted], check: bool) -> list:
    """All that can be seen of the fetch, step by step."""
    kind, place = type("Ours", (WholeBatches,), {"most_bytes": most_bytes}), TopicPartition("t", 0)
    part = kind(first, place, MemoryRecords(fetched), None, None, check, isolation, aborted)
    seen: list[object] = []
    try:
        while part:
            for batch in part.take(1):
                seen.append((type(batch), batch.first, batch.next_offset, batch.batches, batch.unpacked_bytes))
                seen.append((batch.timestamp_type, apart(batch.raws)))
                seen.append(read(batch))
            seen.append((part.next_fetch_offset, part.leader_epoch, part.records_read, part.bytes_read))
            seen.append(sorted(part.aborted_producer_ids))
    except Exception as error:
        seen.append(repr(error))
    return seen


def read(batch: Any) -> Any:
    try:
        return batch.offsets().tolist(), batch.arrivals().tolist(), batch.keys(), batch.values()
    except CorruptRecordError as error:
        return str(error)


@settings(max_examples=500)
@given(
    logs,
    st.just(0) | st.integers(0, 12),
    st.sampled_from([0, 1, 200, 400, 1 << 20, 1 << 20, 1 << 20]),
    st.sampled_from([0, 1]),
    st.just([]) | st.lists(st.builds(Aborted, st.integers(0, 2), st.integers(0, 30)), max_size=2),
    st.booleans(),
    st.just(0) | st.integers(0, 100),
)
@example([Part()] * 9, 3, 1 << 20, 1, [], True, 0)
@example([Part(attributes=APPENDED)] * 3 + [Part()] * 3, 0, 1 << 20, 1, [], True, 0)
@example([*[Part()] * 3, Part(attributes=CONTROL), *[Part()] * 3], 0, 1 << 20, 1, [], True, 0)
@example([Part(), *[IN_TRANSACTION] * 3, Part()], 0, 1 << 20, 1, [], True, 0)
@example([Part(), *[IN_TRANSACTION] * 3, Part()], 0, 1 << 20, 1, [Aborted(1, 1)], True, 0)
@example([Part(), *[IN_TRANSACTION] * 3, Part()], 0, 1 << 20, 0, [Aborted(1, 1)], True, 0)
def test_nobody_sees_that_there_was_a_walk(log, first, most_bytes, isolation, aborted, check, cut):
    """Of every kind of batch, begun anywhere, its last batch cut: the same batches, columns, positions and errors."""
    fetched = b"".join(laid_out(log))
    fetched = fetched[: len(fetched) - cut]
    arguments = (fetched, first, most_bytes, isolation, aborted, check)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_runs.Run, "plain_behind", lambda *_: None)
        wanted = handed_on(*arguments)
    for kernel in KERNELS:
        with chosen(kernel):
            assert handed_on(*arguments) == wanted


def test_small_batches_are_found_in_one_walk(kernel, monkeypatch):
    """A run takes one look at a batch and one walk; where a transaction is aborted further on, a look at each."""
    walks = []
    behind = batch_runs.Run.plain_behind
    monkeypatch.setattr(batch_runs.Run, "plain_behind", lambda *given: walks.append(behind(*given)) or walks[-1])
    fetched = b"".join(laid_out([Part()] * 100))
    (_, first, stop, batches, _), *_ = handed_on(fetched, 0, 1 << 20, 1, [], True)
    assert (first, stop, batches, [found[1] for found in walks]) == (0, 100, 100, [99])
    walks.clear()
    (_, first, stop, batches, _), *_ = handed_on(fetched, 0, 1 << 20, 1, [Aborted(1, 1_000)], True)
    assert (first, stop, batches, walks) == (0, 100, 100, [])
    handed_on(fetched, 0, 1 << 20, 0, [Aborted(1, 1_000)], True)
    assert [found[1] for found in walks] == [99], "whoever wants all records does not ask which are aborted"
