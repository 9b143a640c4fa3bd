"""A plan, its configuration as it is printed, and a pipeline that runs it: the counts are as wrong as was planned."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from support.embedded_runs import HOUR_MS, START_MS, here, releases, run_here, write_events
from support.seeded_coins import SeededCoins

from sfm_stream.estimation.estimate import estimate
from sfm_stream.wire.keys import decode_key

KEYS, ITEMS, HOURS = 150, 300, 2
PLANNED = ("plan", "--ask", "hour", "150", "400", "--ask", "day", "300", "3000", "--budget", "2", "--active", "2")


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[float]]:
    """Span to the relative errors of all its releases, from a run of the planned configuration."""
    folder: Path = tmp_path_factory.mktemp("planned")
    toml = here(*PLANNED, "--shape", "1024", "20", "--toml").stdout
    toml = toml.replace('keys = "declared"', 'keys = "presence_is_public"')
    toml = "\n".join(line for line in toml.splitlines() if not line.startswith("declared"))
    (folder / "app.toml").write_text(toml, "utf-8")
    rng = np.random.default_rng(5)
    hours = rng.integers(0, HOURS, (KEYS, ITEMS))
    write_events(
        folder / "events.jsonl",
        (
            {"page": f"p{key}", "user": f"{key} {item}", "at": START_MS + int(hours[key, item]) * HOUR_MS + item}
            for key in range(KEYS)
            for item in range(ITEMS)
        ),
    )
    run_here(folder / "app.toml", SeededCoins(11))
    found: dict[str, list[float]] = {"hour": [], "day": []}
    for release in releases(folder / "planned.sqlite"):
        (page,) = decode_key(release.key)
        of_key = hours[int(str(page)[1:])]
        hour = (release.window.start_ms - START_MS) // HOUR_MS
        truth = ITEMS if release.span == "day" else int(np.count_nonzero(of_key == hour))
        assert release.span is not None
        found[release.span].append(estimate(release.sketch).unclamped / truth - 1)
    return found


@pytest.mark.parametrize("span", ["hour", "day"])
def test_counts_are_as_wrong_as_planned(errors, span):
    document = json.loads(here(*PLANNED, "--shape", "1024", "20", "--json").stdout)
    (planned,) = (answer["typical_error"] for answer in document["answers"] if answer["span"] == span)
    assert len(errors[span]) == KEYS * (HOURS if span == "hour" else 1)
    measured = math.sqrt(np.mean(np.square(errors[span])))
    # Laplace noise has kurtosis 6, and hours have some 8 % more or fewer items than the 150 that were planned for.
    assert abs(measured / planned - 1) < 4.5 * math.sqrt(2.5) / math.sqrt(2 * len(errors[span])) + planned
    assert abs(np.mean(errors[span])) < 4.5 * planned / math.sqrt(len(errors[span]))
