"""The roll-ups that a question asks for: of its keys, inside its span, each once."""

from __future__ import annotations

from collections.abc import Iterator

from sfm_stream.answers.known_records import KnownRecords
from sfm_stream.answers.omitted_records import OmittedRecords
from sfm_stream.answers.published_records import rollup_heads, rollup_of
from sfm_stream.answers.question import Question
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import StoredRecord
from sfm_stream.wire.codec import RollupRecord
from sfm_stream.wire.heads import RollupHead
from sfm_stream.wire.rollup_form import RollupForms

_HELD_BYTES, _HELD_BESIDE = 4 << 20, 600
"""Of the records that are held in place of a second look-up, and about what each takes beside its value."""


def newest_rollups(
    reader: TopicReader, pipeline: str, question: Question, omitted: OmittedRecords
) -> Iterator[RollupRecord]:
    """The newest revision of each quarter, hour and day that is asked for, as they are looked up.

    Where they are many they are looked up twice, so that one number of each is held and no sketches. What is published
    after the first time is not in the answer.
    """
    known, held, room = KnownRecords(), list[tuple[StoredRecord, RollupHead]](), _HELD_BYTES
    forms = RollupForms()
    for stored, head in rollup_heads(reader, pipeline, question, forms):
        before = known.newest((head.epoch, head.partition, head.window, stored.key), head.revision)
        if before is not None:
            omitted.duplicates += head.revision == before
            omitted.replaced += head.revision != before
        room -= len(stored.value) + _HELD_BESIDE
        if room >= 0:
            held.append((stored, head))
        else:
            held.clear()
    for stored, head in held if room >= 0 else rollup_heads(reader, pipeline, question, forms):
        # Each newest revision is taken out when it is met first: a second record of it is a copy.
        if known.take((head.epoch, head.partition, head.window, stored.key), head.revision):
            yield rollup_of(stored, forms)
