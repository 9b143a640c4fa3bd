"""The pages of `sfm-stream serve`, by their addresses. They are made here, of what is published, and need no script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from sfm_stream.answers.key_notation import ALL
from sfm_stream.errors import BrokerAway, NothingFound, QuestionError, SfmStreamError, StorageError
from sfm_stream.readable import visible
from sfm_stream.serve.pages.asked import asked_span_of, problem_words
from sfm_stream.serve.pages.compare_view import compare_view
from sfm_stream.serve.pages.grain_choices import ONE_SPAN as LASTS
from sfm_stream.serve.pages.key_display import address
from sfm_stream.serve.pages.key_view import key_view
from sfm_stream.serve.pages.keys_view import keys_view
from sfm_stream.serve.pages.overview import overview
from sfm_stream.serve.pages.rendering import render
from sfm_stream.serve.pages.static_files import static_files
from sfm_stream.serve.pages.worth_view import SIZES, worth_view
from sfm_stream.serve.refusals import NotNow, TooMuchAsked
from sfm_stream.serve.served import ServedPipeline
from sfm_stream.transport.contract import TopicReader

_FOREVER = "public, max-age=31536000, immutable"
Text = Annotated[str, Query(max_length=100_000)]
Since = Annotated[str, Query(alias="from", max_length=100)]
Until = Annotated[str, Query(alias="to", max_length=100)]
Make = Callable[[ServedPipeline, TopicReader], str]


def make_pages(pipelines: Mapping[str, ServedPipeline]) -> APIRouter:
    """The pages of these pipelines, by their ids, and the static files that they need."""
    router = APIRouter(include_in_schema=False)
    pages = _Pages(pipelines)
    for path, page in (
        ("/", pages.index),
        ("/p/{pipeline}", pages.overview),
        ("/p/{pipeline}/keys", pages.keys),
        ("/p/{pipeline}/key", pages.key),
        ("/p/{pipeline}/compare", pages.compare),
        ("/p/{pipeline}/worth", pages.worth),
    ):
        router.add_api_route(path, page, methods=["GET", "HEAD"], response_model=None)
    router.add_api_route("/static/{name}", static_file, methods=["GET", "HEAD"], response_model=None)
    return router


def static_file(name: str, v: str = "") -> Response:
    """A static file; its address holds its version, so it is never asked for twice. v: a version.

    Of another version, such as that of another server behind the same proxy, nobody may keep what this server has.
    """
    found = static_files().get(name)
    if found is None:
        return Response("no such file\n", 404, media_type="text/plain")
    kept = _FOREVER if v == found.version else "no-cache"
    return Response(found.content, headers={"cache-control": kept}, media_type=found.media_type)


class _Pages:
    """The pages as functions of a request and the parts of its address."""

    def __init__(self, pipelines: Mapping[str, ServedPipeline]) -> None:
        self._pipelines = pipelines

    def index(self, request: Request) -> Response:
        """All pipelines; of one alone its overview at once."""
        if len(self._pipelines) == 1:
            return RedirectResponse(_root(request) + address("p", *self._pipelines))
        listed = [(name, each.config, each.progress()) for name, each in sorted(self._pipelines.items())]
        return HTMLResponse(render("index.html", _root(request), pipeline="", zone="", here="", listed=listed))

    def overview(
        self,
        request: Request,
        pipeline: str,
        by: Text = "",
        since: Since = "",
        until: Until = "",
        last: Text = "",
        every: Annotated[str, Query(alias="all", max_length=1)] = "",
    ) -> Response:
        asked = {"by": by, "since": since, "until": until, "last": last}

        def make(served: ServedPipeline, reader: TopicReader) -> str:
            return self._page(request, served, "overview", view=overview(served, reader, asked, bool(every)))

        return self._answered(request, pipeline, make)

    def keys(self, request: Request, pipeline: str, search: Text = "", after: Text = "") -> Response:
        def make(served: ServedPipeline, reader: TopicReader) -> str:
            return self._page(request, served, "keys", view=keys_view(served, reader, search, after), search=search)

        return self._answered(request, pipeline, make)

    def key(
        self,
        request: Request,
        pipeline: str,
        key: Text = ALL,
        by: Text = "",
        since: Since = "",
        until: Until = "",
        last: Text = "",
    ) -> Response:
        def make(served: ServedPipeline, reader: TopicReader) -> str:
            span = asked_span_of(served.config, by, since, until, last)
            return self._page(request, served, "key", view=key_view(served, reader, key, span))

        return self._answered(request, pipeline, make)

    def compare(
        self,
        request: Request,
        pipeline: str,
        by: Text = "",
        key: Text = "",
        since: Since = "",
        until: Until = "",
        last: Text = "",
        other_key: Text = "",
        other_since: Annotated[str, Query(alias="other_from")] = "",
        other_until: Annotated[str, Query(alias="other_to")] = "",
        other_last: Text = "",
    ) -> Response:
        first = {"by": by, "key": key, "since": since, "until": until, "last": last}
        other = {"by": by, "key": other_key, "since": other_since, "until": other_until, "last": other_last}

        def make(served: ServedPipeline, reader: TopicReader) -> str:
            view = compare_view(served, reader, (first, other))
            return self._page(request, served, "compare", view=view, lasts=LASTS)

        return self._answered(request, pipeline, make)

    def worth(self, request: Request, pipeline: str) -> Response:
        def make(served: ServedPipeline, reader: TopicReader) -> str:
            return self._page(request, served, "worth", view=worth_view(served, reader), sizes=SIZES)

        return self._answered(request, pipeline, make)

    def _answered(self, request: Request, pipeline: str, make: Make) -> Response:
        """What `make` gives, or the page that says why there is nothing."""
        served = self._pipelines.get(pipeline)
        if served is None:
            return self._problem(request, None, 404, "There is no such pipeline", f"Nothing is served as {pipeline!r}.")
        progress = served.progress()
        if not progress.ready:
            page = self._page(request, served, "building", progress=progress)
            return HTMLResponse(page, 503, {"retry-after": "2"})
        try:
            with served.reader() as reader:
                return HTMLResponse(make(served, reader))
        except QuestionError as error:
            return self._problem(request, served, 400, "This cannot be asked", problem_words(error))
        except TooMuchAsked as error:
            return self._problem(request, served, 400, "This is too much for one page", problem_words(error))
        except NothingFound as error:
            return self._problem(request, served, 200, "Nothing to show yet", problem_words(error))
        except (BrokerAway, NotNow, StorageError) as error:
            return self._problem(request, served, 503, "What is published cannot be read now", problem_words(error))
        except SfmStreamError as error:
            return self._problem(request, served, 500, "What is published cannot be read", problem_words(error))

    def _problem(
        self, request: Request, served: ServedPipeline | None, status: int, title: str, problem: str
    ) -> Response:
        words = {"title": title, "problem": visible(problem), "back": _back(request)}
        if served is None:
            return HTMLResponse(render("problem.html", _root(request), pipeline="", zone="", here="", **words), status)
        return HTMLResponse(self._page(request, served, "problem", **words), status)

    def _page(self, request: Request, served: ServedPipeline, here: str, **values: object) -> str:
        """A template of a pipeline, with what all of them need."""
        config = served.config
        return render(
            f"{here}.html",
            _root(request),
            pipeline=config.pipeline.id,
            zone=config.calendar.zone,
            item=visible(config.event.item),
            key_fields=visible(", ".join(config.event.key)) or "of all",
            here=here,
            pages=[(name, words, address("p", config.pipeline.id, *tail)) for name, words, *tail in _PAGES],
            **values,
        )


_PAGES = (
    ("overview", "Overview"),
    ("keys", "Keys", "keys"),
    ("compare", "Compare", "compare"),
    ("worth", "What it is worth", "worth"),
)
"""Name of the template, words of the link, rest of the path."""


def _root(request: Request) -> str:
    return str(request.scope.get("root_path", "")).rstrip("/")


def _back(request: Request) -> str:
    """The page that was asked for, without its query."""
    return str(request.url.path)
