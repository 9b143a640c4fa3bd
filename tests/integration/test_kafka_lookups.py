"""On a real broker: what questions read of the sketch topic, and that they answer as if they had read all of it."""

from __future__ import annotations

from random import Random

import pytest
from support.epochs_on_topics import CountingLog, Epoch, flat
from support.kafka_topics import make_topic, produce, topic_name
from support.memory_topics import Topics, stored
from support.published_topics import VIEWS, question, span

from sfm_stream.answers.answer import answer
from sfm_stream.answers.asked_keys import asked_key
from sfm_stream.answers.asked_last import LastUnits
from sfm_stream.answers.question import Question
from sfm_stream.errors import NothingFound
from sfm_stream.transport.kafka.kafka_python.client import KafkaPythonCluster
from sfm_stream.units import FOREVER_MS, ROLLUPS, SKETCHES

pytestmark = pytest.mark.kafka
WINDOWS = 4000
MOST = 1500
"""Records that a question about two hours of both partitions reads: with three in a window most are of the same batches
of 16 KiB as those that are asked for, some ten looks at two ends of it each.
"""
LAST = Question("range", last=LastUnits("2h", 2, "hour", FOREVER_MS))


def partitions() -> list[list[bytes]]:
    """Two epochs of as many windows: the first one finishes its last tenth when the second has closed a tenth."""
    made = []
    for partition in (0, 1):
        first, second = (
            flat(epoch.records(Random(partition), partition, 2))
            for epoch in (Epoch(1, 0, WINDOWS // 2), Epoch(2, WINDOWS // 2, WINDOWS))
        )
        cut, middle = len(first) * 9 // 10, len(second) // 10
        made.append([*first[:cut], *second[:middle], *first[cut:], *second[middle:]])
    return made


@pytest.fixture(scope="module")
def sketches() -> list[list[bytes]]:
    return partitions()


@pytest.fixture(scope="module")
def names(kafka: str, sketches: list[list[bytes]]) -> dict[str, str]:
    """Written in transactions of a hundred records, all of them now: their control records are stamped later than any
    window, so that these topics are the worst case of a history that was counted at once; and the same without
    transactions, which is how the stamps of a pipeline that goes on look from afar.
    """
    made = {}
    for kind in ("at once", "plain"):
        made[kind] = make_topic(kafka, topic_name("lookups"), 2)
        records = [(r.key, r.value, r.timestamp_ms, p) for p, each in enumerate(sketches) for r in stored(each)]
        if kind == "plain":
            produce(kafka, made[kind], records)
            continue
        writer = topic_name("writer")
        for low in range(0, len(records), len(records) // 4):
            produce(kafka, made[kind], records[low : low + len(records) // 4], transactional_id=writer)
    made["rollups"] = make_topic(kafka, topic_name("lookups"), 2)
    return made


QUESTIONS = {
    "the last hours": (LAST, MOST),
    "windows of the last hours": (Question("window", last=LAST.last), MOST),
    "two hours of the past": (question("range", span(400, 408)), MOST),
    "a change of epochs": (question("range", span(WINDOWS // 2 - 40, WINDOWS // 2 + 40)), None),
    "a key without a window": (Question("range", (asked_key("nobody", 1),), span(1500, 1508)), MOST),
    "behind the end": (question("range", span(WINDOWS + 8, WINDOWS + 16)), MOST),
}


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("kind", ["plain", "at once"])
def test_questions_read_what_they_are_about_and_answer_as_if_they_had_read_all(kafka, names, sketches, kind, name):
    asked, most = QUESTIONS[name]
    log = CountingLog(KafkaPythonCluster((kafka,)), {SKETCHES: names[kind], ROLLUPS: names["rollups"]})
    everything = Topics(record for each in sketches for record in each)
    try:
        assert said(log, asked) == said(everything, asked)
        in_all = sum(map(len, sketches))
        if kind == "plain" and most is not None:
            assert log.read_records <= most < in_all // 10
    finally:
        log.close()


def said(reader, asked: Question):
    try:
        return list(answer(reader, VIEWS, asked).rows)
    except NothingFound as nothing:
        return str(nothing)
