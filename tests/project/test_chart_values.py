"""Values of the Helm chart that are refused: by values.schema.json, or by what the chart knows of app.toml."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support.charts import CHART, default_config, template

CONFIG = default_config()
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def refusal(*arguments: str | Path) -> str:
    done = template(*arguments)
    assert done.returncode != 0, done.stdout[:500]
    return done.stderr


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("imgae.tag=1", "imgae"),
        ("image.digest=sha256:12", "digest"),
        ("image.repository=", "repository"),
        ("image.pullPolicy=Sometimes", "pullPolicy"),
        ("ingest.replicas=-1", "replicas"),
        ("ingest.replicas=two", "replicas"),
        ("ingest.resources.limits.memory=2Gb", "memory"),
        ("ingest.firstStart=true", "firstStart"),
        ("firstStart=yes-please", "firstStart"),
        ("kafka.password=hunter2", "kafka"),
        ("secrets[0].name=s,secrets[0].mountPath=/secrets/s", "components"),
        ("secrets[0].name=s,secrets[0].mountPath=/secrets/s,secrets[0].components={grafana}", "components"),
        ("secrets[0].name=s,secrets[0].mountPath=/pipeline/s,secrets[0].components={ingest}", "mountPath"),
        ("secrets[0].name=s,secrets[0].mountPath=s,secrets[0].components={ingest}", "mountPath"),
        ("secrets[0].name=s,secrets[0].value=x,secrets[0].mountPath=/s,secrets[0].components={ingest}", "value"),
        ("listen.host=127.0.0.1", "host"),
        ("listen.operator=0", "operator"),
        ("pods.runAsUser=0", "runAsUser"),
        ("pods.terminationGracePeriodSeconds=5", "terminationGracePeriodSeconds"),
        ("disruptionBudget.maxUnavailable=0", "maxUnavailable"),
        ("networkPolicy.public[0].everybody=true", "public"),
        ("networkPolicy.egress[0].ports[0].port=9092", "egress"),
        ("serviceMonitor.interval=often", "interval"),
        ("serve.service.type=ExternalName", "type"),
        ("config=", "config"),
    ],
)
def test_the_schema_refuses(value, said):
    found = refusal("--set", value)
    assert "values don't meet the specifications of the schema" in found
    assert said in found


def test_a_peer_that_is_nobody_in_particular_is_refused():
    assert "public" in refusal("--set-json", "networkPolicy.public=[{}]")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('id = "page', "id = page", "no TOML"),
        ("[kafka]", "[cluster]", "no [kafka]"),
        ('"0.0.0.0:9465"', '"127.0.0.1:9465"', 'metrics.public = "127.0.0.1:9465"'),
        ("max_raw_bytes = 1073741824", "max_raw_bytes = 5368709121", "limits.max_raw_bytes = 5368709121"),
        ("[logs]", '[serve]\ncache = "/tmp/"\n[logs]', 'serve.cache = "/tmp/"'),
        ("[logs]", '[serve]\ncache = "x/.."\n[logs]', 'serve.cache = "x/.."'),
    ],
)
def test_a_configuration_that_cannot_work_in_a_cluster_is_refused(tmp_path, old, new, said):
    assert CONFIG.count(old) == 1
    (tmp_path / "app.toml").write_text(CONFIG.replace(old, new))
    assert said in refusal("--set-file", f"config={tmp_path / 'app.toml'}")


@pytest.mark.parametrize("memory", ["4Gi", "4097Mi", "4.3G", "5000000000"])
def test_more_memory_than_raw_state_may_take_is_accepted(tmp_path, memory):
    """By default that is 4 GiB."""
    (tmp_path / "app.toml").write_text(CONFIG.replace("max_raw_bytes = 1073741824", ""))
    chosen = ("--set-file", f"config={tmp_path / 'app.toml'}", "--set")
    done = template(*chosen, f"ingest.resources.limits.memory={memory}")
    assert done.returncode == 0, done.stderr
    assert "limits.max_raw_bytes = 4294967296" in refusal(*chosen, "ingest.resources.limits.memory=4095Mi")


@pytest.mark.parametrize(("old", "new"), [("epoch = 1", "epoch = 2"), ('"page-visitors"', '"others"')])
def test_a_component_of_another_pipeline_is_refused(tmp_path, old, new):
    (tmp_path / "own.toml").write_text(CONFIG.replace(old, new))
    found = refusal("--set-file", f"rollup.config={tmp_path / 'own.toml'}")
    assert "config of rollup: another pipeline." in found


def open_tables(schema: object, path: str = "") -> Iterator[str]:
    """Tables of the schema that take settings it does not know."""
    if isinstance(schema, dict):
        if "properties" in schema and schema.get("additionalProperties") is not False:
            yield path
        for name, inner in schema.items():
            yield from open_tables(inner, f"{path}/{name}")
    elif isinstance(schema, list):
        for number, inner in enumerate(schema):
            yield from open_tables(inner, f"{path}/{number}")


def test_no_table_takes_what_it_does_not_know():
    assert list(open_tables(SCHEMA)) == []
    assert list(open_tables({"a": {"properties": {}}})) == ["/a"]


def settings(values: object, path: str = "") -> set[str]:
    if not isinstance(values, dict) or not values:
        return {path}
    return {found for name, inner in values.items() for found in settings(inner, f"{path}.{name}")}


def test_every_value_of_the_schema_has_a_default():
    """So that values.yaml shows all of them. Of free mappings it shows the empty one."""

    def tables(schema: dict[str, object]) -> object:
        reference = str(schema.get("$ref", "")).rpartition("/")[2]
        found = SCHEMA["definitions"][reference] if reference else schema
        inner = found.get("properties")
        return {name: tables(each) for name, each in inner.items()} if inner else None

    known = settings(tables(SCHEMA))
    shown = settings(yaml.safe_load((CHART / "values.yaml").read_text()))
    below = {path for path in shown if any(path.startswith(f"{each}.") for each in known)}
    assert known - {".global"} == shown - below | {
        path for path in known if any(p.startswith(f"{path}.") for p in below)
    }
