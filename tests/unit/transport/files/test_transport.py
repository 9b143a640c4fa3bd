"""The embedded transport beyond the common contract: chained workers, resumption, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.log_records import record_count

from sfm_stream.errors import StateError, UsageError
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.transport.files.topic_input import TopicInput
from sfm_stream.transport.files.transport import FileTransport
from sfm_stream.types import Assigned, Commit, InputEnd, Record, Step
from sfm_stream.units import ROLLUPS, SKETCHES


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteLog]:
    log = SqliteLog(str(tmp_path / "published.sqlite"))
    yield log
    log.close()


def sketch(number: int, partition: int = 0) -> Record:
    return Record(SKETCHES, partition, b"k%d" % number, b"v%d" % number, 1_000 * number)


def test_the_rollup_reads_what_the_ingest_commits_over_one_log(log: SqliteLog, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"a\nb\n")
    ingest = FileTransport(LineInput(str(tmp_path / "in"), complete=True), log, "ingest")
    rollup = FileTransport(TopicInput(log, SKETCHES), log, "rollup")
    assert rollup.poll() == [Assigned(0)]
    assert rollup.poll() == [InputEnd(0, False)]
    assert ingest.poll() == [Assigned(0)]
    assert ingest.commit(Step((sketch(1), sketch(2)), (Commit(0, 4, b"i"),)))
    (batch,) = rollup.poll()
    assert (batch.partition, batch.first, batch.next_offset, batch.count) == (0, 0, 2, 2)  # type: ignore[union-attr]
    assert batch.offsets().tolist() == [0, 1]  # type: ignore[union-attr]
    assert batch.arrivals().tolist() == [1_000, 2_000]  # type: ignore[union-attr]
    assert batch.arrivals().dtype == batch.offsets().dtype == np.int64  # type: ignore[union-attr]
    assert batch.keys() == [b"k1", b"k2"]  # type: ignore[union-attr]
    assert list(batch.values()) == [b"v1", b"v2"]  # type: ignore[union-attr]
    assert rollup.poll() == [InputEnd(0, False)]
    assert rollup.commit(Step((Record(ROLLUPS, 0, b"k", b"day", 0),), (Commit(0, 2, b"r"),)))
    assert log.positions("ingest") == {0: Commit(0, 4, b"i")}
    assert log.positions("rollup") == {0: Commit(0, 2, b"r")}
    ingest.close()
    rollup.close()
    assert record_count(log, ROLLUPS) == 1


def test_every_partition_of_a_topic_is_assigned_and_read(log: SqliteLog) -> None:
    log.append("ingest", Step((sketch(1, 0), sketch(2, 2), sketch(3, 2))))
    log.append("rollup", Step(commit=(Commit(2, 1, b""),)))
    rollup = FileTransport(TopicInput(log, SKETCHES, partitions=3), log, "rollup")
    assert rollup.poll() == [Assigned(0), Assigned(1), Assigned(2, Commit(2, 1, b""))]
    first, second, third = rollup.poll()
    assert list(first.values()) == [b"v1"]  # type: ignore[union-attr]
    assert second == InputEnd(1, False)
    assert list(third.values()) == [b"v3"]  # type: ignore[union-attr]
    assert rollup.poll() == [InputEnd(0, False), InputEnd(1, False), InputEnd(2, False)]


def test_a_complete_input_ends_for_ever(log: SqliteLog, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"a\n")
    ingest = FileTransport(LineInput(str(tmp_path / "in"), complete=True), log, "ingest")
    ingest.poll()
    assert list(ingest.poll()[0].values()) == [b"a"]  # type: ignore[union-attr]
    for _ in range(3):
        assert ingest.poll() == [InputEnd(0, True)]


def test_a_log_older_than_the_position_stops_with_both_numbers(log: SqliteLog) -> None:
    log.append("ingest", Step((sketch(1),)))
    rollup = FileTransport(TopicInput(log, SKETCHES), log, "rollup")
    rollup.poll()
    rollup.seek(0, 5)
    with pytest.raises(StateError, match="from offset 5, but it ends at 1"):
        rollup.poll()


def test_a_position_in_a_partition_that_is_not_there_stops(log: SqliteLog, tmp_path: Path) -> None:
    log.append("ingest", Step(commit=(Commit(4, 1, b""),)))
    (tmp_path / "in").touch()
    ingest = FileTransport(LineInput(str(tmp_path / "in"), complete=True), log, "ingest")
    with pytest.raises(StateError, match="position in partition 4"):
        ingest.poll()


def test_nothing_can_be_sought_before_the_assignment(log: SqliteLog) -> None:
    rollup = FileTransport(TopicInput(log, SKETCHES), log, "rollup")
    with pytest.raises(UsageError):
        rollup.seek(0, 0)
    rollup.poll()
    with pytest.raises(UsageError):
        rollup.seek(0, -1)


def test_a_batch_of_a_topic_is_bounded(log: SqliteLog) -> None:
    log.append("ingest", Step(tuple(sketch(n) for n in range(10))))
    topic = TopicInput(log, SKETCHES, batch_records=4)
    sizes = []
    while not isinstance(batch := topic.read(0), InputEnd):
        sizes.append(batch.count)
    assert sizes == [4, 4, 2]
