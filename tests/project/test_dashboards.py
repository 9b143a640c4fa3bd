"""The dashboards of deploy/grafana/: made from the metrics, each in its trust domain, and laid out."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from dataclasses import replace

import pytest
import yaml
from support.dashboards import FOLDER, expressions, panels
from support.patience import PATIENCE_S
from support.programs import program

from docs import make_dashboards
from docs.dashboard_panels import OPERATOR, PUBLIC, Panel, Row, of
from sfm_stream.observe import metrics
from sfm_stream.observe.metrics import DEFINITIONS

NAMES = ["operator", "public"]
SEEN_BY_THE_OPERATOR_TOO = {metrics.LEFT_OUT.name}


def shown(rows: tuple[Row, ...]) -> set[str]:
    return {metric.name for row in rows for panel in row.panels for metric in make_dashboards.shown(panel)}


def of_registry(name: str) -> set[str]:
    return {metric.name for metric in DEFINITIONS if metric.registry == name}


def load(name: str) -> dict[str, object]:
    return dict(json.loads((FOLDER / f"{name}.json").read_text("utf-8")))


@pytest.mark.parametrize("name", NAMES)
def test_the_dashboard_is_up_to_date(name):
    assert (FOLDER / f"{name}.json").read_text("utf-8") == make_dashboards.text_of(name), "make docs"


def test_each_metric_is_in_the_dashboard_of_its_trust_domain():
    assert shown(OPERATOR) == of_registry("operator") | of_registry("serve") | SEEN_BY_THE_OPERATOR_TOO
    assert shown(PUBLIC) == of_registry("public")


def test_nothing_of_the_operator_is_in_the_public_dashboard():
    """By its text: neither by name, nor by a recorded series, of which the public Prometheus has none."""
    text = (FOLDER / "public.json").read_text("utf-8")
    assert set(re.findall(r"\bsfm_\w+", text)) == of_registry("public")
    assert not [name for name in make_dashboards.recorded() if name in text]
    assert not re.search(r"\b(up|ALERTS)\b", text)


def test_a_metric_of_the_operator_is_found_behind_a_recorded_series():
    recorded = of("job_worker:sfm_position_lag_records:sum")
    planted = replace(PUBLIC[0].panels[0], queries=(replace(PUBLIC[0].panels[0].queries[0], expression=recorded),))
    assert [metric.name for metric in make_dashboards.shown(planted)] == [metrics.LAG.name]


@pytest.mark.parametrize("name", NAMES)
def test_each_panel_says_what_it_shows(name):
    for panel in panels(name):
        asked = " ".join(expressions(panel))
        if "sfm_" in asked:
            assert "sfm_" in panel["description"], panel["title"]
        assert panel["title"]
        assert all(target["datasource"]["uid"] == "${source}" for target in panel["targets"])


@pytest.mark.parametrize("name", NAMES)
def test_variables_are_there_and_used(name):
    loaded = load(name)
    there = [variable["name"] for variable in loaded["templating"]["list"]]
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(loaded["panels"])))
    assert used == set(there)


@pytest.mark.parametrize("name", NAMES)
def test_no_panel_lies_over_another_one(name):
    places = [panel["gridPos"] for panel in load(name)["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for first, second in itertools.combinations(places, 2):
        beside = first["x"] + first["w"] <= second["x"] or second["x"] + second["w"] <= first["x"]
        assert beside or first["y"] + first["h"] <= second["y"] or second["y"] + second["h"] <= first["y"]
    numbers = [panel["id"] for panel in load(name)["panels"]]
    assert len(set(numbers)) == len(numbers)


def checked(folder, asked: list[str]) -> subprocess.CompletedProcess[str]:
    """promtool reads these expressions, each as a rule of its own."""
    rules = [{"record": f"asked:{number}", "expr": each} for number, each in enumerate(asked)]
    file = folder / "asked.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "asked", "rules": rules}]}))
    return subprocess.run(
        [program("promtool"), "check", "rules", str(file)], capture_output=True, text=True, timeout=PATIENCE_S
    )


def test_every_expression_is_one(tmp_path):
    asked = [each for name in NAMES for panel in panels(name) for each in expressions(panel)]
    assert len(asked) > 40
    done = checked(tmp_path, asked)
    assert done.returncode == 0, done.stderr
    assert f"{len(asked)} rules found" in done.stdout
    assert checked(tmp_path, [*asked, asked[0] + ")"]).returncode == 1


def test_a_panel_of_no_known_metric_shows_nothing():
    assert make_dashboards.shown(Panel("x", ())) == []
