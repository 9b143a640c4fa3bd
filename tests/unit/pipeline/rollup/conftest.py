"""Roll-ups in these tests are estimated cheaply: what is asked here is which record comes when, and of what."""

import pytest
from support.rollup_runs import cheap_estimates

from sfm_stream.pipeline.rollup import publication


@pytest.fixture(autouse=True)
def _cheap(monkeypatch):
    monkeypatch.setattr(publication, "estimate_many", cheap_estimates)
