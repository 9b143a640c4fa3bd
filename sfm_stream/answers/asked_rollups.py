"""The roll-ups that a question asks for: of its keys, inside its span, each once."""

from __future__ import annotations

from collections.abc import Iterator

from sfm_stream.answers.omitted_records import OmittedRecords
from sfm_stream.answers.published_records import rollup_revisions
from sfm_stream.answers.question import Question
from sfm_stream.transport.contract import TopicReader
from sfm_stream.wire.codec import RollupRecord
from sfm_stream.wire.records import release_id


def newest_rollups(
    reader: TopicReader, pipeline: str, question: Question, omitted: OmittedRecords
) -> Iterator[RollupRecord]:
    """The newest revision of each quarter, hour and day that is asked for, in order of the topic.

    Reads the topic twice, so as to hold one number of each roll-up and no sketches: what is published after the first
    reading is not in the answer.
    """
    newest: dict[bytes, int] = {}
    for identity, record in _asked_revisions(reader, pipeline, question):
        if identity in newest:
            omitted.duplicates += record.revision == newest[identity]
            omitted.replaced += record.revision != newest[identity]
        newest[identity] = max(newest.get(identity, 0), record.revision)
    for identity, record in _asked_revisions(reader, pipeline, question):
        # Each newest revision is taken out when it is met first: a second record of it is a copy.
        if newest.get(identity) == record.revision:
            del newest[identity]
            yield record


def _asked_revisions(reader: TopicReader, pipeline: str, question: Question) -> Iterator[tuple[bytes, RollupRecord]]:
    """Every revision that is asked for, with 16 bytes that all revisions of one roll-up share.

    They are the id that a release of its window would have: the length of its span tells its grain.
    """
    for record in rollup_revisions(reader, pipeline):
        if question.grain in (None, record.grain) and question.asks_for(record.window, record.key):
            yield release_id(record.pipeline, record.epoch, record.partition, record.window, record.key), record
