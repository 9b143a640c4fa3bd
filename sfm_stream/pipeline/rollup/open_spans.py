"""One open span of a roll-up: a sum of releases for each key in it.

state      a release in it                      left by
OPEN       MERGED once, DUPLICATE or CONFLICT   a marker that reaches its end, or the end of its epoch: FINAL
FINAL      ALREADY_FINAL                        its last record goes into a step: PUBLISHED
PUBLISHED  ALREADY_FINAL                        nothing

Replay builds published spans again where coarser spans around them are not published: they are OPEN until the same
marker as before, and their records are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from xxhash import xxh3_128_digest

from sfm_stream.estimation.estimate import Estimate
from sfm_stream.pipeline.rollup.position import Cursor
from sfm_stream.sketch.agreement import Combinable
from sfm_stream.sketch.tally import Tally
from sfm_stream.sketch.tally_sum import TallySum
from sfm_stream.types import Window
from sfm_stream.units import PUBLISHED_GRAINS
from sfm_stream.wire.codec import Release


class SpanState(Enum):
    """See the table above."""

    OPEN = "open"
    FINAL = "final"
    PUBLISHED = "published"


class ReleaseOutcome(Enum):
    """What became of a release that was given to a roll-up. Only MERGED changes anything.

    CONFLICT: another payload for a release that is merged already, which is a privacy incident. ALREADY_FINAL: its
    span takes no release any more.
    """

    MERGED = "merged"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    ALREADY_FINAL = "already_final"


def state_of(grain: str, window: Window, final_ms: int, cursor: Cursor) -> SpanState:
    """The state of a span. final_ms: spans that end at or before it are final. cursor: the last thing published."""
    if cursor.covers(window.end_ms, grain, None):
        return SpanState.PUBLISHED
    return SpanState.FINAL if window.end_ms <= final_ms else SpanState.OPEN


@dataclass(slots=True)
class KeySum:
    """The sum of the releases of one key in one span.

    digests: window start -> 128 bits of a fast hash of the release added for it, as nobody chooses a second payload.
    In a coarser span: start of each span of the finest grain whose tally was recalled from its record -> nothing.
    answered: the estimate once there is one, with the number of releases it is of; a sum of as many is the same sum.
    """

    sum: TallySum
    digests: dict[int, bytes] = field(default_factory=dict)
    answered: tuple[int, Estimate] | None = None


@dataclass(slots=True)
class OpenSpan:
    """One span that is not published yet.

    grain: None where nothing is published of the releases in it; then they are told from second payloads, and not
    summed. first_offset: of the earliest release in it that no recalled tally holds, where replay must begin.
    provisional: key -> revision of the last record that was published before the span was final.
    """

    grain: str | None
    window: Window
    keys: dict[bytes, KeySum] = field(default_factory=dict)
    first_offset: int | None = None
    provisional: dict[bytes, int] = field(default_factory=dict)

    @property
    def publication_order(self) -> tuple[int, int]:
        """Spans are published in this order: by their end, and of one end the finer grain first."""
        assert self.grain is not None
        return self.window.end_ms, PUBLISHED_GRAINS.index(self.grain)

    def merge(self, release: Release, payload: bytes, offset: int) -> ReleaseOutcome:
        """Add a release once."""
        key_sum = self.key_sum(release.key, release.sketch)
        digest = xxh3_128_digest(payload)
        known = key_sum.digests.get(release.window.start_ms)
        if known is not None:
            return ReleaseOutcome.DUPLICATE if known == digest else ReleaseOutcome.CONFLICT
        key_sum.digests[release.window.start_ms] = digest
        if self.grain is not None:
            key_sum.sum.add(release.sketch)
        if self.first_offset is None:
            self.first_offset = offset
        return ReleaseOutcome.MERGED

    def recall_part(self, part: Window, key: bytes, tally: Tally) -> None:
        """Add the tally of a key in a span of the finest grain inside this one, once."""
        key_sum = self.key_sum(key, tally)
        if part.start_ms not in key_sum.digests:
            key_sum.digests[part.start_ms] = b""
            key_sum.sum.add_tally(tally)

    def add_part(self, part: Window, key: bytes, total: TallySum) -> KeySum | None:
        """Add the sum of a key in a span of the finest grain inside this one, unless its tally was recalled.

        Returns the sum of this span where it is that part and nothing else.
        """
        if self.has_part(part, key):
            return None
        key_sum = self.key_sum(key, total)
        key_sum.sum.add_sum(total)
        return key_sum if key_sum.sum.releases == total.releases else None

    def has_part(self, part: Window, key: bytes) -> bool:
        """Whether the tally of a key in a span of the finest grain inside this one was recalled."""
        return key in self.keys and part.start_ms in self.keys[key].digests

    def key_sum(self, key: bytes, like: Combinable) -> KeySum:
        """The sum of a key, begun where there is none. like: what has the shape, hash and flip of its sketches."""
        key_sum = self.keys.get(key)
        if key_sum is None:
            key_sum = self.keys[key] = KeySum(TallySum.like(like))
        return key_sum
