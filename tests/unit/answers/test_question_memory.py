"""What a question holds and reads over a long history: no more than over a short one."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.memory_topics import stored
from support.published_topics import T0, VIEWS, closed, question, rolled, span
from support.rollup_runs import HOUR_MS, QUARTER_MS, release

from sfm_stream.answers import answer_rows, asked_rollups, known_records, release_sum
from sfm_stream.answers.answer import answer
from sfm_stream.answers.asked_keys import AskedKey
from sfm_stream.answers.asked_last import LastUnits
from sfm_stream.answers.export import ExportReport, exported_rows
from sfm_stream.answers.question import Question
from sfm_stream.estimation.estimate import Estimate, Status
from sfm_stream.transport.files.log_reader import LogReader
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Record, Step, Window
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.codec import decode_rollup, encode
from sfm_stream.wire.keys import encode_key

SHORT, LONG = 100, 500
"""In windows; either is more than a page of records."""
KEYS = ("a", "b")
GUESS = Estimate(1.0, 1.0, 0.0, 2.0, Status.OK, 0.95, 1.0)
ONE = (AskedKey("a", frozenset([encode_key("a")])),)


class Counting(LogReader):
    """Counts the records that it takes out of the file."""

    taken = 0

    def _records(self, *arguments, **named):
        found = super()._records(*arguments, **named)
        self.taken += len(found)
        return found


def history(path: Path, windows: int) -> str:
    sketches = []
    for number in range(windows):
        sketches += [release(T0 + number * QUARTER_MS, key) for key in KEYS]
        sketches.append(closed(number, number + 1))
    first = [decode_rollup(each) for each in rolled(sketches[: 4 * (len(KEYS) + 1)])]
    hours = [
        encode(replace(each, window=Window(T0 + n * HOUR_MS, T0 + (n + 1) * HOUR_MS)))
        for n in range(windows // 4)
        for each in first
    ]
    log = SqliteLog(str(path))
    for topic, payloads in ((SKETCHES, sketches), (ROLLUPS, hours)):
        records = (Record(topic, 0, each.key, each.value, each.timestamp_ms) for each in stored(payloads))
        log.append("w", Step(tuple(records)))
    log.close()
    return str(path)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    folder = tmp_path_factory.mktemp("histories")
    return {windows: history(folder / f"{windows}.sqlite", windows) for windows in (SHORT, LONG)}


def everything(reader: LogReader, asked: Question) -> int:
    return sum(1 for _ in answer(reader, VIEWS, asked).rows)


def exported(reader: LogReader, asked: Question) -> int:
    return sum(1 for _ in exported_rows(reader, VIEWS, asked, ExportReport()))


@pytest.mark.parametrize(
    ("grain", "asking", "bytes_a_release"),
    [
        ("window", everything, 0),
        ("hour", everything, 0),
        ("week", everything, 250),
        ("range", everything, 250),
        ("window", exported, 0),
    ],
)
def test_a_history_five_times_as_long_takes_no_more_memory(monkeypatch, paths, grain, asking, bytes_a_release):
    """A union holds 24 bytes of each release that it reads at a time, a few times over while they are sorted, and its
    sums 4 bytes for each level; the rest is 64 KiB of slack. A head, a digest or an object of each release or row would
    be more than 500 bytes of each. What the estimator takes is not the subject.
    """
    monkeypatch.setattr(release_sum, "estimate_union", lambda tallies: GUESS)
    # So many roll-ups, rows and identities are held, of either history.
    for module, limit, value in (
        (asked_rollups, "_HELD_BYTES", 1 << 14),
        (answer_rows, "_HELD_BYTES", 1 << 14),
        (known_records, "_FEW", 8),
    ):
        monkeypatch.setattr(module, limit, value)
    peaks = {}
    for windows, path in paths.items():
        reader = LogReader(path)
        asked = question(grain, span(0, windows) if grain == "range" else Window(0, 1 << 61))
        asking(reader, asked)  # what is loaded and cached once
        tracemalloc.start()
        rows = asking(reader, asked)
        peaks[windows] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert rows >= len(KEYS)
        reader.close()
    grown = (LONG - SHORT) * len(KEYS)
    assert peaks[LONG] - peaks[SHORT] <= (1 << 16) + bytes_a_release * grown
    assert (1 << 16) + bytes_a_release * grown < 500 * grown


def test_rows_that_are_held_are_those_that_would_be_in_a_table(monkeypatch, paths):
    answers = []
    for room, few in ((answer_rows._HELD_BYTES, known_records._FEW), (1 << 14, 8), (0, 0)):
        monkeypatch.setattr(answer_rows, "_HELD_BYTES", room)
        monkeypatch.setattr(known_records, "_FEW", few)
        reader = LogReader(paths[SHORT])
        for grain in ("hour", "window"):
            rows = answer(reader, VIEWS, question(grain, Window(0, 1 << 61))).rows
            answers.append((list(rows), len(rows), rows.keys))
        reader.close()
    assert answers[:2] == answers[2:4] == answers[4:]


def test_roll_ups_that_are_held_are_those_that_would_be_looked_up_again(monkeypatch, paths):
    answers = []
    for room in (asked_rollups._HELD_BYTES, 1 << 14, 0):
        monkeypatch.setattr(asked_rollups, "_HELD_BYTES", room)
        reader = LogReader(paths[SHORT])
        answers.append(list(answer(reader, VIEWS, question("hour", Window(0, 1 << 61))).rows))
        reader.close()
    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0]) > len(KEYS)


QUESTIONS = {
    "a window": (Question("window", ONE, span(40, 44)), 4 + 5),
    "an hour from windows": (Question("range", ONE, span(40, 44)), 4 + 4 + 5),
    "an hour": (Question("hour", ONE, span(40, 44)), 2),
    "all keys": (Question("range", None, span(40, 44)), 4 * 3 + 8 + 5),
}


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("windows", [SHORT, LONG])
def test_a_question_reads_what_it_is_about(paths, name, windows):
    """The first marker of the run and two at each border, then the releases: for a union twice."""
    asked, most = QUESTIONS[name]
    reader = Counting(paths[windows])
    assert everything(reader, asked) in (len(KEYS), 4, 1)
    assert reader.taken <= most
    reader.close()


def test_the_last_hours_read_the_last_markers_once_more(paths):
    reader = Counting(paths[LONG])
    asked = Question("range", ONE, last=LastUnits("1h", 1, "hour", 1 << 60))
    assert everything(reader, asked) == 1
    assert reader.taken <= 5 + QUESTIONS["an hour from windows"][1]
    reader.close()


def rows_of_file(path: str) -> Iterator[object]:
    reader = LogReader(path)
    yield from answer(reader, VIEWS, question("window")).rows
    reader.close()


def test_an_answer_can_be_gone_through_again(paths):
    reader = LogReader(paths[SHORT])
    rows = answer(reader, VIEWS, question("window")).rows
    assert list(rows) == list(rows) == list(rows_of_file(paths[SHORT]))
    assert len(rows) == SHORT * len(KEYS)
    assert next(iter(rows)) in rows
    assert rows != [*rows][1:]
    reader.close()
