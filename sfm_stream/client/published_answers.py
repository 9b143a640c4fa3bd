"""Open answers about a pipeline: from a configuration, or from a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from sfm_stream.answers.asked import Asked
from sfm_stream.client.answer_table import AnswerTable
from sfm_stream.client.columns import compared_columns, estimate_columns, part_columns, ranked_columns
from sfm_stream.client.source import AnswerSource, JsonObject
from sfm_stream.config.config import load_config
from sfm_stream.errors import QuestionError, UsageError

_PAGE_KEYS = 1000
_PARTS = ("both", "only_first", "only_second", "either")


def open_answers(source: str | Path, pipeline: str = "") -> PublishedAnswers:
    """Answers about a pipeline; close them, or use them as a context.

    source: a configuration (app.toml), whose output file or topics are read, or the URL of a server. pipeline: its id,
    where a server has several. Raises ConfigError, StateError or BrokerError where it cannot be opened.
    """
    if str(source).startswith(("http://", "https://")):
        from sfm_stream.client.http_source import HttpSource  # httpx is loaded where a server is asked

        return PublishedAnswers(HttpSource(str(source), pipeline))
    config = load_config(Path(source))
    if pipeline not in ("", config.pipeline.id):
        raise UsageError(f"{source} is of pipeline {config.pipeline.id}, not of {pipeline}")
    from sfm_stream.client.published_source import PublishedSource

    return PublishedAnswers(PublishedSource(config))


class PublishedAnswers:
    """Answers about what one pipeline has published. Asking costs no privacy, however often.

    Every method raises QuestionError for a question that makes no sense, NothingFound where nothing that is published
    is an answer, IncompatibleError for sketches that cannot be combined, and what a source raises: StateError,
    StorageError, ConflictError, BrokerError; BrokerAway where a server does not answer now, and may later.
    """

    def __init__(self, source: AnswerSource) -> None:
        self._source, self.terms = source, source.terms

    def estimates(
        self,
        keys: tuple[str, ...] | list[str] = (),
        by: str | None = None,
        since: str | None = None,
        until: str | None = None,
        last: str | None = None,
        joined: bool = False,
    ) -> AnswerTable:
        """A row for each key and span, in order of time and key. The parameters are those of Asked.

        Without `by` it is one row over the whole span where that has two ends, else a row a day.
        """
        rows, unanswered = self._source.estimates(Asked(keys, by, since, until, last, joined))
        return AnswerTable(self.terms, estimate_columns(self.terms), rows, unanswered)

    def top(
        self,
        count: int = 10,
        keys: tuple[str, ...] | list[str] = (),
        by: str | None = None,
        since: str | None = None,
        until: str | None = None,
        last: str | None = None,
    ) -> AnswerTable:
        """The keys with the largest numbers in one span, the largest first, with the ranks that are left open."""
        if not isinstance(count, int) or isinstance(count, bool):
            raise QuestionError(f"expected a whole number of keys, got {type(count).__name__}", "count")
        rows = self._source.top(Asked(keys, by, since, until, last), count)
        return AnswerTable(self.terms, ranked_columns(self.terms), rows)

    def compare(self, first: Asked, second: Asked) -> AnswerTable:
        """The second less the first, key by key. What the second does not give is that of the first."""
        rows = self._source.compare(first, second.beside(first))
        return AnswerTable(self.terms, compared_columns(self.terms), rows)

    def pair(self, first: Asked, second: Asked) -> AnswerTable:
        """Rows of what two sets share: both, only_first, only_second and either (the column `part`).

        What the second does not give is that of the first.
        """
        found = self._source.pair(first, second.beside(first))
        return AnswerTable(self.terms, part_columns(self.terms), [{"part": part, **found[part]} for part in _PARTS])

    def keys(self, search: str = "") -> Iterator[str]:
        """The published keys as they are shown, which is what questions take. search: a part of them, in any case."""
        after, more = None, True
        while more:
            page, more = self._source.keys(search, after, _PAGE_KEYS)
            yield from page
            after = page[-1] if page else None

    def completeness(self) -> JsonObject:
        """Through when each released span is decided, and which partitions are behind, as the API says it."""
        return self._source.completeness()

    def statement(self) -> str:
        """What the pipeline promises, in words."""
        return self._source.statement()

    def close(self) -> None:
        """Close the file, or the connections."""
        self._source.close()

    def __enter__(self) -> PublishedAnswers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
