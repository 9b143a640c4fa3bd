"""The application: the JSON API and the page, behind the guard that every request passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from sfm_stream.config.tables import ServeTable
from sfm_stream.errors import SfmStreamError
from sfm_stream.serve import problems
from sfm_stream.serve.api import make_api
from sfm_stream.serve.description import STYLE, TITLE, described, docs_page
from sfm_stream.serve.guard import Guard
from sfm_stream.serve.pages.router import make_pages
from sfm_stream.serve.serve_metrics import RequestTimes, add_metrics
from sfm_stream.serve.served import ServedPipeline

_NO_ADDRESS = "Nothing is at this address: /v1/docs lists those of the API. None ends in a slash."


def make_app(pipelines: Mapping[str, ServedPipeline], settings: ServeTable) -> FastAPI:
    """The application over these pipelines, by their ids. Opens nothing."""
    requests = RequestTimes()
    # Not redirected: it would be to http, as this server does not know of the TLS of a proxy.
    app = FastAPI(title=TITLE, docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.include_router(make_api(pipelines, settings))
    app.include_router(make_pages(pipelines))
    _add_health(app, pipelines)
    add_metrics(app, pipelines, requests)
    _add_description(app, sorted(pipelines))
    app.add_exception_handler(SfmStreamError, _of_error)
    app.add_exception_handler(RequestValidationError, _of_query)
    app.add_exception_handler(HTTPException, _of_address)
    app.add_middleware(Guard, listen=settings.listen, hosts=settings.hosts, answered=requests.answered)
    if settings.cors_origins:
        app.add_middleware(_OtherOrigins, origins=settings.cors_origins)
    return app


class _OtherOrigins:
    """Lets pages of some other origins read the API, and nothing but the API."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        self._app = app
        self._api = CORSMiddleware(
            app,
            allow_origins=origins,
            allow_methods=["GET", "HEAD"],
            allow_headers=["If-None-Match"],
            expose_headers=["ETag"],
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._api if scope["type"] == "http" and scope["path"].startswith("/v1/") else self._app
        await app(scope, receive, send)


def _add_health(app: FastAPI, pipelines: Mapping[str, ServedPipeline]) -> None:
    @app.get("/live", include_in_schema=False)
    async def live() -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    @app.get("/ready", include_in_schema=False)
    def ready() -> PlainTextResponse:
        waiting = [name for name, each in pipelines.items() if not each.progress().ready]
        said = "".join(f"{name}: not ready\n" for name in waiting)
        return PlainTextResponse(said or "ok\n", 503 if waiting else 200)


def _add_description(app: FastAPI, pipelines: Sequence[str]) -> None:
    document = described(app, pipelines)
    page = docs_page(document)

    @app.get("/v1/openapi.json", include_in_schema=False)
    async def openapi() -> JSONResponse:
        return JSONResponse(document)

    @app.get("/v1/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(page)

    @app.get("/v1/docs.css", include_in_schema=False)
    async def style() -> Response:
        return Response(STYLE, media_type="text/css")


async def _of_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, SfmStreamError)
    return problems.response_to(error)


async def _of_query(request: Request, error: Exception) -> Response:
    """What is wrong with which parameter. What was given is not repeated."""
    assert isinstance(error, RequestValidationError)
    wrong = [
        problems.WrongParameter(parameter=str(each["loc"][1] if len(each["loc"]) > 1 else ""), problem=each["msg"])
        for each in error.errors()
    ]
    detail = "; ".join(f"{each.parameter}: {each.problem}" for each in wrong)
    return problems.response_of(problems.QUESTION, f"{detail}. /v1/docs lists the parameters.", wrong)


async def _of_address(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == problems.METHOD.status:
        return problems.response_of(problems.METHOD, "Nothing can be changed here: ask with GET.")
    return problems.response_of(problems.UNKNOWN, _NO_ADDRESS)
