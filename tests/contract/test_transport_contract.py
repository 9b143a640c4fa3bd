"""The Transport contract: the same laws for every backend."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from contract.contract import BACKENDS, Backend, KafkaBackend, assign, poll_until, read_to_end

from sfm_stream.errors import SfmStreamError
from sfm_stream.transport.contract import Transport
from sfm_stream.transport.kafka.kafka_python.client import KafkaPythonCluster
from sfm_stream.types import Commit, InputEnd, Record, Step, StoredRecord
from sfm_stream.units import ROLLUPS, SKETCHES

VALUES = [b'{"n": %d}' % n for n in range(40)]


@pytest.fixture(params=[*sorted(BACKENDS), pytest.param("kafka", marks=pytest.mark.kafka)])
def backend(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Backend:
    if request.param == "kafka":
        return KafkaBackend(
            KafkaPythonCluster((request.getfixturevalue("kafka"),), session_ms=6_000, transaction_ms=5_000)
        )
    return BACKENDS[request.param](tmp_path, monkeypatch)


@contextlib.contextmanager
def opened(backend: Backend) -> Iterator[Transport]:
    transport = backend.open()
    try:
        yield transport
    finally:
        transport.close()


def published(
    backend: Backend, topic: str = SKETCHES, partition: int | None = None, offset: int = 0
) -> list[StoredRecord]:
    with backend.reader() as reader:
        return list(reader.read(topic, partition, offset))


def record(number: int, topic: str = SKETCHES, partition: int = 0) -> Record:
    return Record(topic, partition, b"key-%d" % number, b"value-%d" % number, 60_000 * number)


def test_a_partition_is_assigned_before_its_first_batch_and_once(backend: Backend) -> None:
    backend.load(VALUES)
    with opened(backend) as transport:
        assert transport.partitions == 1
        seen = read_to_end(transport)
    assert seen.kinds[0] == "Assigned"
    assert [event.partition for event in seen.assigned] == [0]
    assert seen.assigned[0].committed is None


def test_batches_ascend_without_gap_or_repetition(backend: Backend) -> None:
    backend.load(VALUES)
    with opened(backend) as transport:
        seen = read_to_end(transport)
        joined = isinstance(backend, KafkaBackend)
        if joined:  # what can be read at once is one batch
            backend.load(VALUES)
            more = poll_until(transport, lambda seen: len(seen.records) == len(VALUES))
            seen.records += more.records
            seen.spans += more.spans
    assert [value for _, value in seen.records] == VALUES * (1 + joined)
    offsets = [offset for offset, _ in seen.records]
    assert offsets == sorted(set(offsets))
    assert len(seen.spans) > 1
    for (_, next_offset), (first, _) in zip(seen.spans, seen.spans[1:], strict=False):
        assert first >= next_offset


def test_a_seek_replays_the_same_records_from_there(backend: Backend) -> None:
    backend.load(VALUES)
    with opened(backend) as transport:
        everything = read_to_end(transport).records
        for index in (0, 1, 17, len(VALUES) - 1):
            transport.seek(0, everything[index][0])
            replay = read_to_end(transport)
            assert replay.records == everything[index:]
            assert replay.spans[0][0] == everything[index][0]


def test_a_seek_right_after_the_assignment_comes_before_any_record(backend: Backend) -> None:
    backend.load(VALUES)
    with opened(backend) as transport:
        third = read_to_end(transport).records[3]
    with opened(backend) as transport:
        assign(transport)
        transport.seek(0, third[0])
        assert read_to_end(transport).records[0] == third


def test_a_partition_not_assigned_cannot_be_sought(backend: Backend) -> None:
    with opened(backend) as transport:
        assign(transport)
        with pytest.raises(SfmStreamError):
            transport.seek(7, 0)


def test_the_end_is_told_again_and_records_that_come_later_are_read(backend: Backend) -> None:
    backend.load(VALUES[:5])
    with opened(backend) as transport:
        seen = read_to_end(transport)
        assert not seen.ends[0].complete
        again = read_to_end(transport)
        assert not again.records
        position = seen.spans[-1][1]
    backend.load(VALUES[5:9])
    with opened(backend) as transport:
        assign(transport)
        transport.seek(0, position)
        assert [value for _, value in read_to_end(transport).records] == VALUES[5:9]


def test_a_partition_that_is_held_brings_nothing_and_then_goes_on_where_it_was(backend: Backend) -> None:
    backend.load(VALUES)
    with opened(backend) as transport:
        assign(transport)
        transport.hold({0})
        for _ in range(5):
            assert all(isinstance(event, InputEnd) for event in transport.poll())
        transport.hold(set())
        assert [value for _, value in read_to_end(transport).records] == VALUES
    with opened(backend) as transport:
        begun = poll_until(transport, lambda seen: bool(seen.records))
        transport.hold({0})
        for _ in range(5):
            assert all(isinstance(event, InputEnd) for event in transport.poll())
        transport.hold({7})  # of a partition that is not assigned nothing comes in any case
        assert [value for _, value in begun.records + read_to_end(transport).records] == VALUES


def test_a_partition_that_is_sought_is_held_no_longer(backend: Backend) -> None:
    backend.load(VALUES)
    with opened(backend) as transport:
        assign(transport)
        transport.hold({0})
        transport.seek(0, 0)
        assert [value for _, value in read_to_end(transport).records] == VALUES


def test_an_empty_input_is_assigned_and_ends(backend: Backend) -> None:
    backend.load([])
    with opened(backend) as transport:
        seen = read_to_end(transport)
    assert seen.kinds[0] == "Assigned"
    assert not seen.records


def test_records_are_published_in_order_with_their_bytes(backend: Backend) -> None:
    odd = (
        Record(SKETCHES, 0, b"", b"", 0),
        Record(SKETCHES, 0, b"\x00\xff\n", bytes(range(256)) * 40, 1_700_000_000_000),
        Record(SKETCHES, 0, b"\x00\xff\n", b"the same key again", 1),
    )
    with opened(backend) as transport:
        assign(transport)
        assert transport.commit(Step(odd))
        found = published(backend)
        assert [(r.key, r.value, r.timestamp_ms, r.partition) for r in found] == [
            (r.key, r.value, r.timestamp_ms, r.partition) for r in odd
        ]
        assert transport.commit(Step((record(4),)))
    offsets = [r.offset for r in published(backend)]
    assert len(offsets) == 4
    assert offsets == sorted(set(offsets))


def test_topics_and_partitions_are_apart(backend: Backend) -> None:
    mixed = (
        record(0),
        record(1, ROLLUPS),
        record(2, SKETCHES, 1),
        record(3),
        record(4, ROLLUPS),
        record(5, SKETCHES, 1),
    )
    with opened(backend) as transport:
        assign(transport)
        assert transport.commit(Step(mixed))
    assert [r.value for r in published(backend, ROLLUPS)] == [b"value-1", b"value-4"]
    assert [r.value for r in published(backend, SKETCHES, 0)] == [b"value-0", b"value-3"]
    assert [r.value for r in published(backend, SKETCHES, 1)] == [b"value-2", b"value-5"]
    assert sorted(r.value for r in published(backend)) == [b"value-0", b"value-2", b"value-3", b"value-5"]
    assert published(backend, "no-such-topic") == []


def test_reading_starts_at_an_offset(backend: Backend) -> None:
    with opened(backend) as transport:
        assign(transport)
        assert transport.commit(Step(tuple(record(n) for n in range(10))))
    everything = published(backend, partition=0)
    for index in (0, 4, 9):
        assert published(backend, partition=0, offset=everything[index].offset) == everything[index:]
    assert published(backend, partition=0, offset=everything[-1].offset + 1) == []


@pytest.mark.parametrize(
    "metadata", [b"", b"\x00", bytes(range(256)) * 16, b"\xff" * 4095], ids=["empty", "nul", "4096", "4095"]
)
def test_the_committed_position_comes_back_with_its_exact_metadata(backend: Backend, metadata: bytes) -> None:
    backend.load(VALUES)
    with opened(backend) as transport:
        seen = read_to_end(transport)
        commit = Commit(0, seen.records[7][0], metadata)
        assert transport.commit(Step(commit=(commit,)))
    with opened(backend) as transport:
        assert assign(transport).committed == commit


def test_reading_goes_on_at_the_committed_offset(backend: Backend) -> None:
    backend.load(VALUES)
    with opened(backend) as transport:
        seen = read_to_end(transport)
        assert transport.commit(Step(commit=(Commit(0, seen.records[7][0], b""),)))
    with opened(backend) as transport:
        assert read_to_end(transport).records == seen.records[7:]


def test_the_last_position_counts_and_may_go_back(backend: Backend) -> None:
    backend.load(VALUES)
    with opened(backend) as transport:
        seen = read_to_end(transport)
        for index in (3, 9, 5):
            assert transport.commit(Step(commit=(Commit(0, seen.records[index][0], b"%d" % index),)))
    with opened(backend) as transport:
        assert assign(transport).committed == Commit(0, seen.records[5][0], b"5")


def test_a_commit_is_records_and_position_together(backend: Backend) -> None:
    backend.load(VALUES)
    with opened(backend) as transport:
        assign(transport)
        assert published(backend) == []
        assert transport.commit(Step((record(1), record(2, ROLLUPS)), (Commit(0, 0, b"first"),)))
        # Seen at once by others, before the transport is closed.
        assert [r.value for r in published(backend)] == [b"value-1"]
        assert [r.value for r in published(backend, ROLLUPS)] == [b"value-2"]
    with opened(backend) as transport:
        assert assign(transport).committed == Commit(0, 0, b"first")


def test_a_commit_that_fails_leaves_neither_record_nor_position(backend: Backend) -> None:
    backend.load(VALUES)
    step = Step((record(2), record(3, ROLLUPS)), (Commit(0, 0, b"second"),))
    with opened(backend) as transport:
        assign(transport)
        assert transport.commit(Step((record(1),), (Commit(0, 0, b"first"),)))
        with backend.commits_fail():
            with contextlib.suppress(SfmStreamError):
                assert not transport.commit(step)
            assert [r.value for r in published(backend)] == [b"value-1"]
            assert published(backend, ROLLUPS) == []
    with opened(backend) as transport:
        assert assign(transport).committed == Commit(0, 0, b"first")
        assert transport.commit(step)
    assert [r.value for r in published(backend)] == [b"value-1", b"value-2"]
    with opened(backend) as transport:
        assert assign(transport).committed == Commit(0, 0, b"second")


def test_an_empty_step_changes_nothing(backend: Backend) -> None:
    with opened(backend) as transport:
        assign(transport)
        assert transport.commit(Step())
    with opened(backend) as transport:
        assert assign(transport).committed is None
    assert published(backend) == []


def test_polling_between_commits_loses_nothing(backend: Backend) -> None:
    backend.load(VALUES)
    with opened(backend) as transport:
        seen: list[bytes | None] = []
        while len(seen) < len(VALUES):
            part = poll_until(transport, lambda part: bool(part.records))
            seen += [value for _, value in part.records]
            assert transport.commit(Step((record(len(seen)),), (Commit(0, part.spans[-1][1], b""),)))
        assert seen == VALUES
