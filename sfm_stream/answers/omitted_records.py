"""What an answer leaves out of the records that are asked for."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class OmittedRecords:
    """Records that a question asks for and that its answer leaves out.

    duplicates: identical copies. replaced: roll-ups that have a newer revision. conflicts: ids of releases with a
    second, different payload, each a privacy incident.
    """

    duplicates: int = 0
    replaced: int = 0
    conflicts: set[bytes] = field(default_factory=set)
