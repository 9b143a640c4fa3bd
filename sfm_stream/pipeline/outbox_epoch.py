"""What was read of one epoch of the outbox: which record may follow. Times, ids and digests only, no records.

    state         a release of a window                        a close marker from start_ms on
    no marker     NEW, REPEATED or SECOND_PAYLOAD              follows, whatever start_ms is: marked
    marked up to  BEHIND_MARKER where the window begins        follows where start_ms = through_ms, or where it is the
    through_ms    before through_ms, else as above             last marker once more; nothing else does

A marker drops the releases of the windows that it closes: another payload for one of them is BEHIND_MARKER anyway.
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
class _OpenRelease:
    """A release of a window that no marker has closed."""

    digest: bytes
    window_end_ms: int
    offset: int


@dataclass(slots=True)
class OutboxEpoch:
    """The open releases of one epoch by release id, in order of offset, and its last marker.

    through_ms: end of the last marker; None before the first one. marker_digest: of its payload.
    """

    through_ms: int | None = None
    marker_digest: bytes = b""
    open_releases: dict[bytes, _OpenRelease] = field(default_factory=dict)

    @property
    def first_open_offset(self) -> int | None:
        """Offset of the earliest release of a window that no marker has closed."""
        return next((release.offset for release in self.open_releases.values()), None)

    def release(self, release_id: bytes, digest: bytes, window: Window, offset: int) -> ReleaseRead:
        """Take a release; only a NEW one changes anything. digest: of its payload."""
        if self.through_ms is not None and window.start_ms < self.through_ms:
            return ReleaseRead.BEHIND_MARKER
        known = self.open_releases.get(release_id)
        if known is not None:
            return ReleaseRead.REPEATED if known.digest == digest else ReleaseRead.SECOND_PAYLOAD
        self.open_releases[release_id] = _OpenRelease(digest, window.end_ms, offset)
        return ReleaseRead.NEW

    def follows(self, start_ms: int, digest: bytes) -> bool:
        """Whether a close marker may come next. digest: of its payload."""
        return self.through_ms is None or start_ms == self.through_ms or digest == self.marker_digest

    def marker(self, through_ms: int, digest: bytes) -> None:
        """Take a close marker that follows."""
        self.through_ms, self.marker_digest = through_ms, digest
        self.open_releases = {
            release_id: release
            for release_id, release in self.open_releases.items()
            if release.window_end_ms > through_ms
        }
