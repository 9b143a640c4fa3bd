"""What a worker needs from the outside world, whichever broker or file stands behind it.

One transport serves one worker: an input of partitions with committed positions, and topics to publish to. Its unit
of input is the RecordBatch, its unit of output the Step. Everything between is the core's, which does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from typing import Protocol, TypeAlias

from sfm_stream.types import (
    Assigned,
    InputEnd,
    RecordBatch,
    Revoked,
    Step,
    StoredRecord,
)
from sfm_stream.units import FOREVER_MS

InputEvent: TypeAlias = RecordBatch | Assigned | Revoked | InputEnd
"""What polling can bring. An Assigned comes before the first batch of its partition, a Revoked after its last."""


class Transport(Protocol):
    """Input, transactional output and positions of one worker."""

    @property
    def partitions(self) -> int:
        """Number of partitions of the whole input, not only of those assigned here."""
        ...

    def poll(self) -> Sequence[InputEvent]:
        """What happened since the last call, in order. Empty when nothing did in a short while."""
        ...

    def seek(self, partition: int, offset: int) -> None:
        """The next batch of an assigned partition starts at this offset."""
        ...

    def hold(self, partitions: Set[int]) -> None:
        """These assigned partitions, and no others, bring no batch until a call without them; nothing of them is lost.

        One that is sought or assigned anew is held no longer.
        """
        ...

    def commit(self, step: Step) -> bool:
        """Publish the records and store the positions, all or nothing.

        True: it is committed. False: it is known not to be; send the same bytes again. Raises SfmStreamError where
        neither can be found out.
        """
        ...

    def close(self) -> None: ...


class TopicReader(Protocol):
    """Committed records of a published topic."""

    def read(
        self,
        topic: str,
        partition: int | None = None,
        offset: int = 0,
        since_ms: int = 0,
        patience_s: float = 0,
    ) -> Iterator[StoredRecord]:
        """From `offset` on, of one partition or of all, in order of offset within each. since_ms: as in look_up().

        patience_s: more than 0: all that was committed before the call, waiting this long for what is undecided.
        Without it the last of it may be missing.
        """
        ...

    def look_up(
        self,
        topic: str,
        since_ms: int = 0,
        until_ms: int = FOREVER_MS,
        keys: Set[bytes] | None = None,
        stamped: Callable[[int], bool] | None = None,
    ) -> Iterator[StoredRecord]:
        """Records of every partition, in any order. What nobody asks for may be left out, or may be among them:

        records stamped before since_ms or behind until_ms, where keys are given those under another key, and those with
        another stamp than `stamped` says yes to.
        """
        ...

    def keys(self, topic: str) -> Iterator[bytes]:
        """The keys that a topic has records under, each once, in the order of their bytes; none of close markers."""
        ...

    def at(self, topic: str, partition: int, offsets: Sequence[int]) -> Iterator[StoredRecord]:
        """The records at these offsets, which ascend; those that are gone are left out."""
        ...

    def markers(self, topic: str, since_ms: int = 0, until_ms: int = FOREVER_MS) -> Iterator[StoredRecord]:
        """Close markers that tell what is decided between two times, in any order; others may be among them.

        Those of one pipeline, epoch, partition and released span are a run, each of which begins where the one before
        it ended. Of each run at least the first and the last one that is stamped in this time, or a later one in place
        of the last. Of each partition besides, from the runs of a finest span, the last one that begins before
        since_ms, and the first one that is stamped until_ms or later.
        """
        ...
