"""The application in front of pipelines that are made up: its guards, and what it says of itself."""

from contextlib import nullcontext

import pytest
from support.http_asking import asking

from sfm_stream.config.tables import ServeTable
from sfm_stream.serve.app import make_app
from sfm_stream.serve.served import ServedPipeline, ServedProgress


def pipeline(progress):
    return ServedPipeline(None, None, nullcontext, lambda: progress, lambda: "0")


@pytest.fixture(scope="module")
def client():
    pipelines = {"built": pipeline(ServedProgress(True)), "building": pipeline(ServedProgress(False, 3, 9))}
    with asking(make_app(pipelines, ServeTable())) as client:
        yield client


def test_it_is_live_at_once_and_ready_once_every_pipeline_can_be_read(client):
    assert client.get("/live").text == "ok\n"
    answer = client.get("/ready")
    assert (answer.status_code, answer.text) == (503, "building: not ready\n")
