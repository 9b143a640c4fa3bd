"""What was read of one epoch of the outbox: which record may follow. Times, ids and digests only, no records.

For each released span of the epoch:

    state         a release of a window of it                a close marker of it, from start_ms on
    no marker     NEW, REPEATED or SECOND_PAYLOAD            follows, whatever start_ms is: marked
    marked up to  BEHIND_MARKER where the window begins      follows where start_ms = through_ms, or where it is the
    through_ms    before through_ms, else as above           last marker once more; nothing else does

A marker drops the releases of the windows of its span that it closes: another payload for one of them is BEHIND_MARKER
anyway. Ids are compared across spans. All records of an epoch name their span, or none does (there is one span then):
agrees() says so, since what is known of a window under the one name is not known under the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from sfm_stream.types import Window


class ReleaseRead(Enum):
    """What a release is to those read before it. Only NEW and REPEATED may be copied."""

    NEW = "new"
    REPEATED = "repeated"
    SECOND_PAYLOAD = "second payload"
    BEHIND_MARKER = "behind marker"


@dataclass(frozen=True, slots=True)
class LastMarker:
    """The last close marker of one span: where it ended, and the digest of its payload."""

    through_ms: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class _OpenRelease:
    """A release of a window that no marker has closed."""

    digest: bytes
    span: str | None
    window_end_ms: int
    offset: int


@dataclass(slots=True)
class OutboxEpoch:
    """The open releases of one epoch by release id, in order of offset, and the last marker of each released span.

    Spans by name; None: the only one of an epoch whose records name no span.
    """

    last_markers: dict[str | None, LastMarker] = field(default_factory=dict)
    open_releases: dict[bytes, _OpenRelease] = field(default_factory=dict)
    _named: bool | None = None
    """Whether the records of this epoch name their span; None before the first one."""

    @property
    def first_open_offset(self) -> int | None:
        """Offset of the earliest release of a window that no marker has closed."""
        return next((release.offset for release in self.open_releases.values()), None)

    def through_ms(self, span: str | None) -> int | None:
        """End of the last marker of a span; None before the first one."""
        last = self.last_markers.get(span)
        return None if last is None else last.through_ms

    def agrees(self, span: str | None) -> bool:
        """Whether a record of this span names its span as those before it did. The first record decides."""
        if self._named is None:
            self._named = span is not None
        return self._named == (span is not None)

    def release(self, release_id: bytes, digest: bytes, span: str | None, window: Window, offset: int) -> ReleaseRead:
        """Take a release; only a NEW one changes anything. digest: of its payload."""
        through_ms = self.through_ms(span)
        if through_ms is not None and window.start_ms < through_ms:
            return ReleaseRead.BEHIND_MARKER
        known = self.open_releases.get(release_id)
        if known is not None:
            return ReleaseRead.REPEATED if known.digest == digest else ReleaseRead.SECOND_PAYLOAD
        self.open_releases[release_id] = _OpenRelease(digest, span, window.end_ms, offset)
        return ReleaseRead.NEW

    def follows(self, span: str | None, start_ms: int, digest: bytes) -> bool:
        """Whether a close marker of a span may come next. digest: of its payload."""
        last = self.last_markers.get(span)
        return last is None or start_ms == last.through_ms or digest == last.digest

    def marker(self, span: str | None, through_ms: int, digest: bytes) -> None:
        """Take a close marker that follows."""
        self.last_markers[span] = LastMarker(through_ms, digest)
        self.open_releases = {
            release_id: release
            for release_id, release in self.open_releases.items()
            if release.span != span or release.window_end_ms > through_ms
        }
