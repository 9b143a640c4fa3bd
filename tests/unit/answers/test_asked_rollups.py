"""Which published records are read for a question."""

from __future__ import annotations

from dataclasses import replace

from support.memory_topics import Topics, stored
from support.published_topics import closed, question, rolled, sketched

from sfm_stream.answers.asked_rollups import newest_rollups
from sfm_stream.answers.omitted_records import OmittedRecords
from sfm_stream.wire.codec import decode_rollup, encode


def test_what_is_published_while_rollups_are_read_is_not_in_the_table():
    """The topic is read twice; what comes in between neither replaces a row nor adds one."""
    known = [
        decode_rollup(payload)
        for payload in rolled([sketched(n, key) for n in range(8) for key in "abc"] + [closed(0, 8)])
    ]
    assert len(known) == 6

    class Growing(Topics):
        reads = 0

        def read(self, topic, *arguments):
            self.reads += 1
            records = [encode(record) for record in known]
            if self.reads == 2:
                records += [encode(replace(known[0], revision=99)), encode(replace(known[0], epoch=2))]
            return iter(stored(records))

    assert list(newest_rollups(Growing(), "views", question(None), OmittedRecords())) == known
