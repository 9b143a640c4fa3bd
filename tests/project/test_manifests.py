"""The manifests for those without Helm, and the page that says how to run either."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import kubernetes_validate
import yaml
from support.chart_rules import dangling, not_restricted
from support.charts import (
    FIRST,
    KUBERNETES,
    ROOT,
    Object,
    config_of,
    container,
    default_config,
    loader,
    mappings,
    named,
    objects,
    pods,
)
from support.programs import program

from deploy.kubernetes import make_manifests
from sfm_stream.observe.metrics import DEFINITIONS

PAGE = (ROOT / "docs/kubernetes.md").read_text("utf-8")


def test_the_manifests_are_what_the_chart_makes():
    made = make_manifests.manifests(program("helm"))
    for name, text in made.items():
        assert (make_manifests.HERE / name).read_text("utf-8") == text, (
            f"{name} is older than the chart: make manifests"
        )


def manifests() -> list[Object]:
    files = sorted(make_manifests.HERE.glob("*.yaml"))
    return [each for file in files for each in yaml.safe_load_all(file.read_text("utf-8"))]


def test_the_manifests_hold_without_helm(tmp_path):
    """Valid, hardened, and with nothing that only Helm reads; all pods read the one ConfigMap."""
    found = manifests()
    assert len([each for each in found if each["kind"] == "ConfigMap"]) == 1
    assert dangling([each for each in found if each["kind"] != "Job"]) == []
    for each in found:
        kubernetes_validate.validate(each, KUBERNETES, strict=True)
        assert not any("helm" in key for part in mappings(each) for key in part)
    for component, pod in pods(found).items():
        assert not_restricted(pod) == [], component
        assert loader(tmp_path)(config_of(found, pod)).pipeline.epoch == 1


# The page


def test_the_commands_of_the_page_are_those_of_this_chart(tmp_path):
    for name in ("app.toml", "new.toml"):
        (tmp_path / name).write_text(default_config())
    told = re.findall(r"^helm (?:install|upgrade) counts deploy/helm/sfm-stream (.+)$", PAGE, re.M)
    assert len(told) == 2
    for arguments in told:
        found = objects(*shlex.split(re.sub(r"config=(\S+)", rf"config={tmp_path}/\1", arguments)))
        assert {each["metadata"]["name"] for each in found if each["kind"] == "Deployment"} >= set(
            re.findall(r"deployment/(\S+?)[` ]", PAGE)
        )
        assert named(found, "Job")


def test_the_page_names_the_files_and_jobs_that_there_are():
    files = re.findall(r"-f (deploy/\S+)", PAGE)
    assert {Path(file).name for file in files} == {file.name for file in make_manifests.HERE.glob("*.yaml")}
    [job] = re.findall(r"job/(\S+)", PAGE)
    assert named(manifests(), "Job")["metadata"]["name"] == job
    metrics = set(re.findall(r"\bsfm_[a-z_]+", PAGE))
    assert metrics <= {definition.name for definition in DEFINITIONS}


def test_the_secrets_of_the_page_are_values_of_the_chart(tmp_path):
    [block] = re.findall(r"^```yaml\n(secrets:.+?)```", PAGE, re.M | re.S)
    (tmp_path / "values.yaml").write_text(block)
    for pod in pods(objects("-f", tmp_path / "values.yaml", *FIRST)).values():
        assert {"mountPath": "/secrets/kafka", "name": "secret-0", "readOnly": True} in container(pod)["volumeMounts"]
