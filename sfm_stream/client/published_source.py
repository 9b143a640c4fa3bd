"""Answers from what a configuration publishes: its output file, or its topics."""

from __future__ import annotations

from contextlib import ExitStack

from sfm_stream.answers.answer import answer
from sfm_stream.answers.asked import Asked
from sfm_stream.answers.compared import compare
from sfm_stream.answers.compared_json import compared_json
from sfm_stream.answers.completeness import completeness
from sfm_stream.answers.completeness_json import completeness_json
from sfm_stream.answers.key_notation import key_of_text, key_text
from sfm_stream.answers.known_keys import known_keys
from sfm_stream.answers.pair_json import pair_json
from sfm_stream.answers.pairs import answer_pair
from sfm_stream.answers.ranked_json import ranked_json
from sfm_stream.answers.release_terms import release_terms
from sfm_stream.answers.row_json import row_json
from sfm_stream.answers.top_keys import top_keys
from sfm_stream.client.source import AnswerTerms, JsonObject
from sfm_stream.composition.published import published
from sfm_stream.config.config import Config
from sfm_stream.errors import QuestionError


class PublishedSource:
    """An AnswerSource over the published records of a configuration."""

    def __init__(self, config: Config) -> None:
        self._config, self._open = config, ExitStack()
        self._reader = self._open.enter_context(published(config))
        self._release_terms = release_terms(config)

    @property
    def terms(self) -> AnswerTerms:
        config = self._config
        return AnswerTerms(config.pipeline.id, config.calendar.zone, tuple(config.event.key))

    def estimates(self, asked: Asked) -> tuple[list[JsonObject], list[str]]:
        found = answer(self._reader, self._release_terms, asked.question(self._config))
        return [row_json(row) for row in found.rows], [line.removeprefix("--key ") for line in found.unanswered]

    def top(self, asked: Asked, count: int) -> list[JsonObject]:
        question = asked.question(self._config, "range")
        return [ranked_json(row) for row in top_keys(self._reader, self._release_terms, question, count)]

    def compare(self, first: Asked, second: Asked) -> list[JsonObject]:
        questions = (each.question(self._config, "range") for each in (first, second))
        return [compared_json(row) for row in compare(self._reader, self._release_terms, *questions)]

    def pair(self, first: Asked, second: Asked) -> JsonObject:
        questions = (each.question(self._config, "range") for each in (first, second))
        return pair_json(answer_pair(self._reader, self._release_terms, *questions))

    def keys(self, search: str, after: str | None, limit: int) -> tuple[list[str], bool]:
        behind = None if after is None else key_of_text(after)
        if after is not None and behind is None:
            raise QuestionError("not a key as it is shown", "after")
        page = known_keys(self._reader, self._release_terms, search, behind, limit)
        return [key_text(key) for key in page.keys], page.more

    def completeness(self) -> JsonObject:
        return completeness_json(completeness(self._reader, self._release_terms))

    def statement(self) -> str:
        return self._config.statement

    def close(self) -> None:
        self._open.close()
