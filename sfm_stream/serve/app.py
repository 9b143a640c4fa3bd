"""The application: the JSON API and the page, behind the guards that every answer passes."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from sfm_stream.config.tables import ServeTable
from sfm_stream.serve.served import ServedPipeline


def make_app(pipelines: Mapping[str, ServedPipeline], settings: ServeTable) -> FastAPI:
    """The application over these pipelines, by their ids. Opens nothing."""
    app = FastAPI(title="sfm-stream", docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/live", include_in_schema=False)
    def live() -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    @app.get("/ready", include_in_schema=False)
    def ready() -> PlainTextResponse:
        waiting = [name for name, each in pipelines.items() if not each.progress().ready]
        said = "".join(f"{name}: not ready\n" for name in waiting)
        return PlainTextResponse(said or "ok\n", 503 if waiting else 200)

    return app
