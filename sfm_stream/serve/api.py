"""The JSON API: each address with what it asks of the modules in answers/, in a thread of its own."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from sfm_stream.answers.answer import answer
from sfm_stream.answers.compared import compare
from sfm_stream.answers.compared_json import compared_json
from sfm_stream.answers.completeness import completeness
from sfm_stream.answers.completeness_json import completeness_json
from sfm_stream.answers.known_keys import known_keys
from sfm_stream.answers.known_keys_json import keys_json
from sfm_stream.answers.looked import looked
from sfm_stream.answers.pair_json import pair_json
from sfm_stream.answers.pairs import answer_pair
from sfm_stream.answers.question import Question
from sfm_stream.answers.ranked_json import ranked_json
from sfm_stream.answers.row_json import row_json
from sfm_stream.answers.top_keys import top_keys
from sfm_stream.config.tables import ServeTable
from sfm_stream.errors import NothingFound
from sfm_stream.serve import models
from sfm_stream.serve.queries import EstimatesQuery, KeysQuery, TopQuery, TwoSpansQuery, question_mark, require_span
from sfm_stream.serve.refusals import TooMuchAsked
from sfm_stream.serve.replies import Replies, csv_lines, json_document, json_lines, json_table
from sfm_stream.serve.served import ServedPipeline

_LOOKED_EVERY = 64


def make_api(pipelines: Mapping[str, ServedPipeline], settings: ServeTable) -> APIRouter:
    """The routes below /v1."""
    api, router = _Api(pipelines, settings), APIRouter(prefix="/v1")
    tables: dict[str, Any] = {
        "application/jsonl": {"schema": {"type": "string"}},
        "text/csv": {"schema": {"type": "string"}},
    }
    for path, asked, model, contents in (
        ("/pipelines", api.pipelines, models.PipelinesJson, {}),
        ("/pipelines/{pipeline}", api.pipeline, models.PipelineStateJson, {}),
        ("/pipelines/{pipeline}/keys", api.keys, models.KeysJson, {}),
        ("/pipelines/{pipeline}/estimates", api.estimates, models.EstimatesJson, tables),
        ("/pipelines/{pipeline}/top", api.top, models.TopJson, {}),
        ("/pipelines/{pipeline}/pair", api.pair, models.PairJson, {}),
        ("/pipelines/{pipeline}/compare", api.compare, models.ComparisonJson, {}),
        ("/pipelines/{pipeline}/completeness", api.completeness, models.CompletenessJson, {}),
        ("/pipelines/{pipeline}/statement", api.statement, models.StatementJson, {}),
    ):
        router.add_api_route(
            path,
            asked,
            operation_id=asked.__name__,
            response_class=Response,
            responses={200: {"model": model, "content": contents}, 304: {"description": "As the ETag that was given"}},
        )
    return router


class _Api:
    """Each method answers the requests of one address; its first sentence is shown to people."""

    def __init__(self, pipelines: Mapping[str, ServedPipeline], settings: ServeTable) -> None:
        self._pipelines, self._settings = pipelines, settings
        configs = {name: each.config.settings.model_dump_json() for name, each in pipelines.items()}
        self._replies = Replies(f"{importlib.metadata.version('sfm-stream')} {configs}")

    def pipelines(self, request: Request) -> Response:
        """The pipelines of this server, and how far each can be read."""
        states = [_state(each) for _, each in sorted(self._pipelines.items())]
        return self._document(request, {"pipelines": states}, repr(states))

    def pipeline(self, request: Request, pipeline: str) -> Response:
        """One pipeline, and how far it can be read."""
        state = _state(self._served(pipeline))
        return self._document(request, state, repr(state))

    def statement(self, request: Request, pipeline: str) -> Response:
        """The privacy statement: what is promised to whom, in words and numbers."""
        words = self._served(pipeline).config.statement
        return self._document(request, {"pipeline": pipeline, "statement": words}, words)

    def keys(self, request: Request, pipeline: str, query: Annotated[KeysQuery, Query()]) -> Response:
        """Published keys, a page at a time."""
        served, after = self._served(pipeline), query.after_key

        def make() -> Iterator[bytes]:
            with served.reader() as reader:
                page = known_keys(reader, served.terms, query.search, after, query.limit, served.held_keys)
            yield from json_document(keys_json(page))

        return self._replies.reply(request, "json", f"{served.log_end()} {query!r}", make)

    def estimates(self, request: Request, pipeline: str, query: Annotated[EstimatesQuery, Query()]) -> Response:
        """Distinct counts with their intervals: a row for each key and span."""
        served = self._served(pipeline)
        question = self._within(query.asked.question(served.config))

        def make() -> Iterator[bytes]:
            with served.reader() as reader:
                answered = answer(reader, served.terms, question)
                self._require_rows(len(answered.rows))
                rows = map(row_json, looked(reader, answered.rows, _LOOKED_EVERY))
                if query.format == "jsonl":
                    yield from json_lines(rows)
                elif query.format == "csv":
                    yield from csv_lines(rows)
                else:
                    unanswered = [line.removeprefix("--key ") for line in answered.unanswered]
                    yield from json_table({**_head(served), "unanswered": unanswered}, "rows", rows)

        return self._replies.reply(request, query.format, _mark(served, question), make)

    def top(self, request: Request, pipeline: str, query: Annotated[TopQuery, Query()]) -> Response:
        """The keys with the largest numbers in one span, with the ranks that their intervals leave open."""
        served = self._served(pipeline)
        question = self._within(query.asked.question(served.config, "range"))

        def make() -> Iterator[bytes]:
            with served.reader() as reader:
                ranked = top_keys(reader, served.terms, question, query.limit)
            yield from json_table(_head(served), "rows", map(ranked_json, ranked))

        return self._replies.reply(request, "json", f"{query.limit} {_mark(served, question)}", make)

    def pair(self, request: Request, pipeline: str, query: Annotated[TwoSpansQuery, Query()]) -> Response:
        """Two sets: what they share, what only one of them has, and both together."""
        served = self._served(pipeline)
        first, second = map(self._within, query.questions(served.config))

        def make() -> Iterator[bytes]:
            with served.reader() as reader:
                parts = answer_pair(reader, served.terms, first, second)
            yield from json_document(pair_json(parts))

        return self._replies.reply(request, "json", _mark(served, first, second), make)

    def compare(self, request: Request, pipeline: str, query: Annotated[TwoSpansQuery, Query()]) -> Response:
        """Two spans or keys side by side: how much more the second one has, with its interval."""
        served = self._served(pipeline)
        first, second = map(self._within, query.questions(served.config))

        def make() -> Iterator[bytes]:
            with served.reader() as reader:
                rows = compare(reader, served.terms, first, second)
                self._require_rows(len(rows))
                yield from json_table(_head(served), "rows", map(compared_json, looked(reader, rows, _LOOKED_EVERY)))

        return self._replies.reply(request, "json", _mark(served, first, second), make)

    def completeness(self, request: Request, pipeline: str) -> Response:
        """How far each released span is decided, and which partitions are behind."""
        served = self._served(pipeline)

        def make() -> Iterator[bytes]:
            with served.reader() as reader:
                found = completeness(reader, served.terms)
            yield from json_document(completeness_json(found))

        return self._replies.reply(request, "json", served.log_end(), make)

    def _served(self, pipeline: str) -> ServedPipeline:
        if (served := self._pipelines.get(pipeline)) is None:
            names = ", ".join(sorted(self._pipelines))
            raise NothingFound(f"this server has no pipeline of this id; it has {names}")
        return served

    def _document(self, request: Request, value: object, mark: str) -> Response:
        return self._replies.reply(request, "json", mark, lambda: json_document(value))

    def _within(self, question: Question) -> Question:
        require_span(question, self._settings.max_span)
        return question

    def _require_rows(self, rows: int) -> None:
        if rows > (most := self._settings.max_rows):
            raise TooMuchAsked(
                f"the answer has {rows} rows, and {most} are allowed (serve.max_rows): ask for fewer keys, a shorter "
                "span or coarser spans"
            )


def _head(served: ServedPipeline) -> dict[str, object]:
    return {"pipeline": served.config.pipeline.id, "zone": served.config.calendar.zone}


def _mark(served: ServedPipeline, *questions: Question) -> str:
    return f"{served.log_end()} {question_mark(questions)}"


def _state(served: ServedPipeline) -> dict[str, object]:
    config, progress = served.config, served.progress()
    return {
        "id": config.pipeline.id,
        "zone": config.calendar.zone,
        "key": list(config.event.key),
        "item": config.event.item,
        "epoch": config.pipeline.epoch,
        "spans": [span.name for span in config.budget.spans],
        "ready": progress.ready,
        "problem": progress.problem,
        "copied": {"done": progress.done, "wanted": progress.wanted},
    }
