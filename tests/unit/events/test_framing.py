"""The header of a schema registry, before records of any format."""

import pytest

from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.formats.format import Fields
from sfm_stream.events.framing import may_be_framed, read_record
from sfm_stream.types import Reason

MARK = b"\xef\xbb\xbf"
FRAME = b"\x00\x00\x00\x01\x02"


class Echo:
    """A format whose time is the whole of a record."""

    schema = EventSchema(
        key=("k",), item="i", time="t", time_unit="ms", earliest_ms=0, latest_ms=9, max_record_bytes=12
    )

    def read(self, value):
        return Fields(Reason.OK, "item", value, ("key",))

    def columns(self, values):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("value", "reason", "read"),
    [
        (None, Reason.OK, None),
        (b"", Reason.OK, b""),
        (b"abc", Reason.OK, b"abc"),
        (MARK + b"abc", Reason.OK, MARK + b"abc"),
        (MARK, Reason.OK, MARK),
        (FRAME + b"abc", Reason.FRAMED, b"abc"),
        (MARK + FRAME + b"abc", Reason.FRAMED, b"abc"),
        (FRAME, Reason.FRAMED, b""),
        (FRAME + FRAME, Reason.FRAMED, FRAME),
        (FRAME + MARK + b"abc", Reason.FRAMED, MARK + b"abc"),
        (FRAME[:4], Reason.OK, FRAME[:4]),
        (MARK + FRAME[:4], Reason.OK, MARK + FRAME[:4]),
        (b" " + FRAME, Reason.OK, b" " + FRAME),
        (FRAME + b"1234567", Reason.FRAMED, b"1234567"),
        (MARK + FRAME + b"1234567", Reason.FRAMED, b"1234567"),
        # too long, the header included: for the format to say
        (FRAME + b"12345678", Reason.OK, FRAME + b"12345678"),
        (MARK + FRAME + b"12345678", Reason.OK, MARK + FRAME + b"12345678"),
    ],
)
def test_what_a_format_is_given_of_a_record(value, reason, read):
    assert read_record(Echo(), value) == (reason, None if reason else "item", read, ("key",))
    assert reason == Reason.OK or may_be_framed(value)
