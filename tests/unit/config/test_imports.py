"""What it costs to load a configuration: nothing that only some commands need comes with it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from support.patience import PATIENCE_S

LOADED = "import json, sys; import {}; print(json.dumps(sorted(sys.modules)))"
HEAVY = {"kafka", "rich", "prometheus_client", "click", "sqlite3", "sfm_stream.estimation.estimate"}


def loaded_by(module: str) -> set[str]:
    command = [sys.executable, "-c", LOADED.format(module)]
    return set(json.loads(subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S).stdout))


def test_the_package_of_the_configuration_loads_nothing() -> None:
    loaded = loaded_by("sfm_stream.config")
    assert not loaded & {*HEAVY, "pydantic", "numpy"}
    assert {name for name in loaded if name.startswith("sfm_stream.")} == {"sfm_stream.config"}


@pytest.mark.parametrize("module", ["sfm_stream.config.config", "sfm_stream.config.tables"])
def test_a_configuration_loads_no_client_no_screen_and_no_estimator(module: str) -> None:
    assert not loaded_by(module) & HEAVY
