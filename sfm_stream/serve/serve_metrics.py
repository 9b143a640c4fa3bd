"""Metrics of a server, for Prometheus: how far each pipeline can be read, as `/v1/pipelines` says too, and requests.

Everybody who may ask the server may know them. Routes are templates, such as `/v1/pipelines/{pipeline}/keys`: no key
and no query, and as many series as there are routes and statuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fastapi import FastAPI, Response
from prometheus_client import Histogram, Metric, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from sfm_stream.observe import metrics
from sfm_stream.observe.metrics import SERVED_SECONDS, Measurement
from sfm_stream.serve.served import ServedPipeline

_BUCKETS_S = (0.005, 0.02, 0.1, 0.5, 2, 10, 60)
"""Most answers take milliseconds, the longest serve.max_time, by default 20 s."""


class RequestTimes(Collector):
    """How long requests took, by route and status."""

    def __init__(self) -> None:
        named = (SERVED_SECONDS.name, SERVED_SECONDS.help, SERVED_SECONDS.labels)
        self._times = Histogram(*named, buckets=_BUCKETS_S, registry=None)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request. May be called from any thread."""
        self._times.labels(route, str(status)).observe(seconds)

    def describe(self) -> Iterable[Metric]:
        return self._times.describe()

    def collect(self) -> Iterator[Metric]:
        for metric in self._times.collect():
            metric.samples = [each for each in metric.samples if not each.name.endswith("_created")]
            yield metric


def add_metrics(app: FastAPI, pipelines: Mapping[str, ServedPipeline], requests: RequestTimes) -> None:
    """Answer /metrics. A scrape asks no cluster."""
    registry = metrics.registry_of("serve", lambda: _measured(pipelines))
    registry.register(requests)

    @app.get("/metrics", include_in_schema=False)
    def scraped() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _measured(pipelines: Mapping[str, ServedPipeline]) -> Iterator[Measurement]:
    for name, pipeline in sorted(pipelines.items()):
        progress = pipeline.progress()
        yield metrics.SERVED_READY, (name,), float(progress.ready)
        yield metrics.SERVED_BEHIND, (name,), max(0, progress.wanted - progress.done)
        yield metrics.SERVED_TROUBLED, (name,), float(bool(progress.problem))
