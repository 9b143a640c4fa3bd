"""Where answers come from: the pipeline's own records, or a server that reads them. Both give the same JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from sfm_stream.answers.asked import Asked

JsonObject: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AnswerTerms:
    """Of a pipeline: its id, the time zone of its days, and the names of the fields of its keys."""

    pipeline: str
    zone: str
    key_fields: tuple[str, ...]


class AnswerSource(Protocol):
    """Answers about one pipeline, as the objects of the API (answers/*_json.py)."""

    @property
    def terms(self) -> AnswerTerms: ...
    def estimates(self, asked: Asked) -> tuple[list[JsonObject], list[str]]:
        """(rows, a line for each key that is asked for and has none)."""
        ...

    def top(self, asked: Asked, count: int) -> list[JsonObject]: ...
    def compare(self, first: Asked, second: Asked) -> list[JsonObject]: ...
    def pair(self, first: Asked, second: Asked) -> JsonObject: ...
    def keys(self, search: str, after: str | None, limit: int) -> tuple[Sequence[str], bool]:
        """(keys as they are shown, whether others follow)."""
        ...

    def completeness(self) -> JsonObject: ...
    def statement(self) -> str: ...
    def close(self) -> None: ...
