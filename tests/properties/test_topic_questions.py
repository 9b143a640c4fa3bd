"""Answers from the topics of a cluster, looked up by time, against those from every record of the same topics.

The topics are those of up to three epochs: some of an earlier one may be published when the next one is at work
already, an epoch may end early or in the middle of a window, and a publisher without a ledger begins once more.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.epochs_on_topics import HOUR, KEYS, Epoch, Written, flat, merged
from support.memory_topics import Topics
from support.published_topics import T0, question, span
from support.rollup_runs import DAY_MS, QUARTER_MS

from sfm_stream.answers import release_sum, window_rows
from sfm_stream.answers.answer import answer
from sfm_stream.answers.asked_last import LastUnits
from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.errors import NothingFound, QuestionError
from sfm_stream.estimation.estimate import Estimate, Status
from sfm_stream.pipeline.rollup.coverage import Absence

GUESS = Estimate(1.0, 1.0, 0.0, 2.0, Status.OK, 0.95, 1.0)


@pytest.fixture(autouse=True, scope="module")
def cheap_estimates():
    """What an estimate says is not the subject."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((release_sum, "estimate"), (release_sum, "estimate_union"), (window_rows, "estimate")):
            patch.setattr(module, name, lambda _: GUESS)
        yield


def partition_of(random: Random, epochs: list[Epoch], partition: int, partitions: int) -> list[bytes]:
    """What a partition of the sketch topic holds."""
    records: list[bytes] = []
    waiting: list[bytes] = []
    for epoch in epochs:
        windows = epoch.records(random, partition, partitions)
        own = flat(windows[: random.randint(0, len(windows))] if random.random() < 0.2 else windows)
        if own and random.random() < 0.2:
            own.pop()  # it ends before the marker of its last window
        cut = random.randint(0, len(own)) if random.random() < 0.3 else len(own)
        records += merged(random, waiting, own[:cut])
        waiting = own[cut:]
    records += waiting
    if random.random() < 0.2:
        copied = random.randint(0, len(records))
        records = records[:copied] + records
    return records


def epochs_of(random: Random) -> list[Epoch]:
    epochs, start = [], random.randint(0, HOUR)
    for number in sorted(random.sample(range(1, 5), random.randint(1, 3))):
        end = start + random.randint(0, 5 * HOUR)
        epochs.append(Epoch(number, start, end, hours=random.random() < 0.5))
        start = end + random.choice([0, 0, 1, HOUR])
    return epochs


QUESTIONS = st.one_of(
    st.tuples(st.sampled_from(["range", "window"]), st.integers(0, 15 * HOUR), st.integers(1, 5 * HOUR)).map(
        lambda asked: question(asked[0], span(asked[1], asked[1] + asked[2]))
    ),
    st.sampled_from(["week", "window"]).map(question),
    st.tuples(st.integers(1, 5), st.sampled_from(["range", "window"]), st.integers(0, 15 * HOUR)).map(
        lambda asked: Question(
            asked[1], last=LastUnits("", asked[0], "hour", T0 + asked[2] * QUARTER_MS if asked[2] else T0 + 9 * DAY_MS)
        )
    ),
)


def said(reader, terms: ReleaseTerms, asked: Question):
    try:
        return list(answer(reader, terms, asked).rows)
    except NothingFound:
        return "nothing"
    except QuestionError as error:
        return str(error)


@settings(deadline=None, max_examples=100)
@given(
    st.integers(0, 1 << 32),
    st.lists(QUESTIONS, min_size=1, max_size=6),
    st.sampled_from([0, 2 * QUARTER_MS, 400 * DAY_MS]),
    st.sampled_from([1, 7, 50]),
    st.frozensets(st.integers(0, 8), max_size=2),
    st.sampled_from([None, 1, 2]),
)
def test_answers_are_those_that_reading_everything_gives(seed, questions, late_ms, at_once, appended, empty_in):
    """late_ms: how long after its window a transaction is committed; 400 days where history was counted at once."""
    random = Random(seed)
    epochs = epochs_of(random)
    partitions = [partition_of(random, epochs, number, len(KEYS)) for number in range(len(KEYS))]
    written = Written().write(partitions, at_once=at_once, late_ms=late_ms, appended=appended)
    everything = Topics([record for records in partitions for record in records])
    terms = ReleaseTerms("views", Absence(empty_in))
    for asked in questions:
        log = written.log()
        assert said(log, terms, asked) == said(everything, terms, asked)
