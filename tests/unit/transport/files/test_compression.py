"""How an input is compressed, from its first bytes, and where reading stands in a gzip file."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pytest

from sfm_stream.transport.files.compression import READ_HERE, Compression, compression_of
from sfm_stream.transport.files.gzip_members import MEMBER_TRANSITIONS, GzipMembers, MemberEvent, MemberState

HEADS = {
    gzip.compress(b"a\n", mtime=0): Compression.GZIP,
    bz2.compress(b"a\n"): Compression.BZIP2,
    lzma.compress(b"a\n"): Compression.XZ,
    b"\x28\xb5\x2f\xfd rest": Compression.ZSTD,
    b'{"a":1}\n': Compression.NONE,
    b"BZX": Compression.NONE,
    b"\x1f\x8c": Compression.NONE,
}


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("head", HEADS, ids=lambda head: head[:3].hex())
def test_the_compression_is_known_by_the_first_bytes_and_stays(head: bytes, at_end: bool) -> None:
    """However many of them are there: undecided first, then one answer."""
    given = [compression_of(head[:size], False) for size in range(len(head) + 1)]
    undecided = given.count(Compression.UNKNOWN)
    assert given == [Compression.UNKNOWN] * undecided + [HEADS[head]] * (len(given) - undecided)
    assert 1 <= undecided <= 5
    assert compression_of(head, at_end) is HEADS[head]


def test_what_is_too_short_to_be_compressed_is_plain_at_the_end_and_nothing_stays_unknown() -> None:
    assert compression_of(b"", True) is compression_of(b"", False) is Compression.UNKNOWN
    for head in (b"\x1f", b"B", b"BZ", b"\xfd7zX"):
        assert compression_of(head, False) is Compression.UNKNOWN
        assert compression_of(head, True) is Compression.NONE
    assert READ_HERE == (Compression.NONE, Compression.GZIP)


MEMBERS = {"BEFORE_FIRST": "INSIDE -", "INSIDE": "- BETWEEN", "BETWEEN": "INSIDE -"}
"""State to the state after BEGINS and ENDS, "-" where it cannot happen."""


@pytest.mark.parametrize("state", MemberState, ids=lambda state: state.name)
@pytest.mark.parametrize("event", MemberEvent, ids=lambda event: event.name)
def test_every_event_in_every_state_of_a_gzip_file(state: MemberState, event: MemberEvent) -> None:
    after = MEMBER_TRANSITIONS.get((state, event))
    expected = dict(zip(("BEGINS", "ENDS"), MEMBERS[state.name].split(), strict=True))[event.name]
    assert (after.name if after else "-") == expected


def test_members_tell_where_they_stand_and_where_each_begins() -> None:
    members = GzipMembers()
    packed = gzip.compress(b"a")
    assert (members.state, members.read(9)) == (MemberState.BEFORE_FIRST, b"")
    members.feed(packed[:5])
    assert (members.read(9), members.state, members.packed_bytes) == (b"", MemberState.INSIDE, 0)
    members.feed(packed[5:] + b"\0\0" + packed)
    assert (members.read(9), members.state, members.member_start) == (b"a", MemberState.BETWEEN, 0)
    assert (members.read(9), members.state, members.member_start) == (b"a", MemberState.BETWEEN, len(packed) + 2)
    assert (members.read(9), members.packed_bytes) == (b"", 0)
