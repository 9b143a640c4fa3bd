"""How far each served pipeline can be read, for Prometheus: what `/v1/pipelines` says too, and everybody may know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fastapi import FastAPI, Response
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from sfm_stream.observe import metrics
from sfm_stream.observe.metrics import Measurement
from sfm_stream.serve.served import ServedPipeline


def add_metrics(app: FastAPI, pipelines: Mapping[str, ServedPipeline]) -> None:
    """Answer /metrics. A scrape asks no cluster."""
    registry = metrics.serve_registry(lambda: _measured(pipelines))

    @app.get("/metrics", include_in_schema=False)
    def scraped() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _measured(pipelines: Mapping[str, ServedPipeline]) -> Iterator[Measurement]:
    for name, pipeline in sorted(pipelines.items()):
        progress = pipeline.progress()
        yield metrics.SERVED_READY, (name,), float(progress.ready)
        yield metrics.SERVED_BEHIND, (name,), max(0, progress.wanted - progress.done)
        yield metrics.SERVED_TROUBLED, (name,), float(bool(progress.problem))
