"""Rules and alerts of deploy/: what they ask for exists, each is tested by promtool, and each has a runbook."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from support.patience import PATIENCE_S
from support.programs import program

from sfm_stream.observe.metrics import DEFINITIONS

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
OPERATING = (ROOT / "docs" / "operating.md").read_text("utf-8")
METRICS = {definition.name: set(definition.labels) for definition in DEFINITIONS}
LABELS = {"worker", "partition", "topic", "reason", "outcome", "grain", "key", "kernel", "command"}
LABELS |= {"pipeline", "route", "status"}
WORKERS = {"ingest", "publish", "rollup", "repartition"}
CASES = sorted((DEPLOY / "tests").glob("*.yml"))


def rules(file: str) -> list[dict[str, object]]:
    (group,) = yaml.safe_load((DEPLOY / file).read_text("utf-8"))["groups"]
    return list(group["rules"])


RECORDED = {str(rule["record"]): str(rule["expr"]) for rule in rules("recording.yml")}
ALERTS = {str(rule["alert"]): rule for rule in rules("alerts.yml")}


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, timeout=PATIENCE_S)


def unknown(text: str) -> set[str]:
    """Metrics, recorded series, workers and labels in an expression or a text of an alert that there are not."""
    asked = set(re.findall(r"\b(?:\w+:)?sfm_[a-z_]+(?::\w+)?", text))
    labels = LABELS | {"job", "instance"}
    named = set(re.findall(r"\$labels\.(\w+)", text))
    named |= {label for names in re.findall(r"(?:by|on) \((.+?)\)", text) for label in names.split(", ")}
    return (
        (asked - METRICS.keys() - RECORDED.keys())
        | (set(re.findall(r'worker="(\w+)"', text)) - WORKERS)
        | (named - labels)
    )


def test_labels_are_those_of_the_definitions():
    assert set().union(*METRICS.values()) == LABELS


def test_rules_ask_for_what_there_is():
    texts = [*RECORDED.values(), *(f"{rule['expr']} {rule['annotations']}" for rule in ALERTS.values())]
    assert [found for text in texts if (found := unknown(text))] == []
    assert len(ALERTS) == len(rules("alerts.yml"))
    assert len(RECORDED) == len(rules("recording.yml"))


def test_what_there_is_not_is_found():
    assert unknown('sfm_lag{worker="ingest"} > 0') == {"sfm_lag"}
    assert unknown('sum by (job, place) (sfm_raw_bytes{worker="counter"})') == {"place", "counter"}
    assert unknown("job:sfm_raw_bytes:sum and {{ $labels.shard }}") == {"job:sfm_raw_bytes:sum", "shard"}


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_series_is_called_by_its_labels_and_its_metric(name):
    """level:metric:operation, where the level is what `by` keeps; the job among it, as two pipelines may be watched."""
    level, metric, _ = name.split(":")
    kept = {labels for labels in re.findall(r"by \((.+?)\)", RECORDED[name])}
    assert {"_".join(labels.split(", ")) for labels in kept} == {level}
    assert level.startswith("job_")
    asked = set(re.findall(r"sfm_\w+", RECORDED[name]))
    assert asked & {metric, f"{metric}_total", metric.replace("_age_", "_timestamp_")}


def test_each_alert_has_a_severity_and_a_section_that_says_what_to_do():
    sections = dict(re.findall(r"^### (\w+)\n(.+?)(?=^#)", OPERATING.split("\n## Runbooks\n")[1], re.M | re.S))
    assert sections.keys() == ALERTS.keys()
    for name, rule in ALERTS.items():
        severity = rule["labels"]["severity"]
        assert severity in ("critical", "warning")
        assert rule["annotations"]["runbook"] == f"docs/operating.md#{name.lower()}"
        assert rule["annotations"]["summary"]
        section = sections[name]
        assert section.startswith(f"{severity}. ")
        assert re.findall(r"^- \*\*(.+?)\*\*", section, re.M) == ["Look at", "Do", "Never"]


def cases() -> list[tuple[str, dict[str, object]]]:
    """(alert, its case) of all files of tests, for promtool."""
    return [
        (case["alertname"], case)
        for file in CASES
        for test in yaml.safe_load(file.read_text("utf-8"))["tests"]
        for case in test.get("alert_rule_test", [])
    ]


def test_each_alert_has_a_case_where_it_fires_and_one_where_all_is_well():
    fires = {name for name, case in cases() if case.get("exp_alerts")}
    well = yaml.safe_load((DEPLOY / "tests" / "rules_of_days.yml").read_text("utf-8"))["tests"][0]
    assert well["name"].startswith("all is well")
    assert fires == ALERTS.keys()
    assert {case["alertname"] for case in well["alert_rule_test"]} == ALERTS.keys()
    assert not any(case.get("exp_alerts") for case in well["alert_rule_test"])


def test_each_recorded_series_has_a_case():
    text = "".join(file.read_text("utf-8") for file in CASES)
    assert RECORDED.keys() == set(re.findall(r"expr: (?:round\()?(\w+:\w+:\w+)", text))


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.name)
def test_promtool_finds_each_alert_where_it_should_be_and_nowhere_else(file):
    done = promtool("test", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_rules_and_the_configuration():
    done = promtool("check", "rules", str(DEPLOY / "recording.yml"), str(DEPLOY / "alerts.yml"))
    assert done.returncode == 0, done.stdout + done.stderr
    for file in sorted(DEPLOY.glob("prometheus*.yml")):
        done = promtool("check", "config", str(file))
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_that_fires_late_or_early_is_found(name, tmp_path):
    """Planted: the alert waits an hour longer; it has no condition at all."""
    series = yaml.safe_load((DEPLOY / "recording.yml").read_text("utf-8"))["groups"]
    rule = {key: value for key, value in ALERTS[name].items() if key != "for"}
    tests = []
    for file in CASES:
        for test in yaml.safe_load(file.read_text("utf-8"))["tests"]:
            own = [case for case in test.get("alert_rule_test", []) if case["alertname"] == name]
            if any(case.get("exp_alerts") for case in own):
                tests.append(test | {"alert_rule_test": own, "promql_expr_test": []})
    assert tests
    step = "5m" if tests[0]["interval"] == "5m" else "1m"
    for number, planted in enumerate([rule | {"for": "100h"}, rule | {"expr": "vector(1)"}]):
        made = tmp_path / f"rules{number}.yml"
        made.write_text(yaml.safe_dump({"groups": [*series, {"name": "planted", "rules": [planted]}]}))
        asked = tmp_path / f"tests{number}.yml"
        asked.write_text(yaml.safe_dump({"rule_files": [made.name], "evaluation_interval": step, "tests": tests}))
        done = promtool("test", "rules", str(asked))
        assert done.returncode == 1, done.stdout
        assert "exp:" in done.stdout + done.stderr
