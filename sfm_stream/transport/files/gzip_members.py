"""The content of a gzip file: its members one after the other (RFC 1952, 2.2)."""

from __future__ import annotations

import zlib
from enum import Enum, auto


class MemberState(Enum):
    """Where reading stands in a gzip file."""

    BEFORE_FIRST = auto()
    """No member has begun: the next byte begins the first one."""
    INSIDE = auto()
    """A member has begun and not ended: the file must not end here."""
    BETWEEN = auto()
    """A member has ended: the next byte is padding or begins another member, or the file ends here."""


class MemberEvent(Enum):
    BEGINS = auto()
    """There is a byte that begins a member."""
    ENDS = auto()
    """The last byte of a member was read, and its checksum is right."""


MEMBER_TRANSITIONS = {
    (MemberState.BEFORE_FIRST, MemberEvent.BEGINS): MemberState.INSIDE,
    (MemberState.INSIDE, MemberEvent.ENDS): MemberState.BETWEEN,
    (MemberState.BETWEEN, MemberEvent.BEGINS): MemberState.INSIDE,
}
"""The state after an event. An event that is not listed for a state cannot happen in it."""


class GzipMembers:
    """Unpacks what it is fed, never more than is asked for.

    member_start: byte of the file at which the member begins that is read, or that would follow.
    """

    def __init__(self) -> None:
        self.state = MemberState.BEFORE_FIRST
        self.member_start = 0
        self._member = zlib.decompressobj(wbits=31)
        self._packed = b""
        self._fed_bytes = 0

    @property
    def packed_bytes(self) -> int:
        """Bytes that were fed and are not unpacked yet."""
        return len(self._packed)

    def feed(self, packed: bytes) -> None:
        """The next bytes of the file."""
        self._packed += packed
        self._fed_bytes += len(packed)

    def read(self, limit: int) -> bytes:
        """Up to `limit` bytes of content; b"": feed more. Raises zlib.error for what is no gzip data."""
        while True:
            if self.state is MemberState.BETWEEN:
                # gzip(1) allows zeros after a member: tapes and block devices pad with them.
                self._packed = self._packed.lstrip(b"\0")
            if self.state is not MemberState.INSIDE:
                if not self._packed:
                    return b""
                self._member = zlib.decompressobj(wbits=31)
                self.member_start = self._fed_bytes - len(self._packed)
                self._take(MemberEvent.BEGINS)
            # Without input too: zlib may still hold output that did not fit the limit of the last call.
            data = self._member.decompress(self._packed, limit)
            if self._member.eof:
                self._packed = self._member.unused_data
                self._take(MemberEvent.ENDS)
            else:
                self._packed = self._member.unconsumed_tail
            if data or not self._packed:
                return data

    def _take(self, event: MemberEvent) -> None:
        self.state = MEMBER_TRANSITIONS[self.state, event]
