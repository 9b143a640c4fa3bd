"""The Helm chart: what it renders is valid, hardened, lets nobody in by mistake, and runs commands that there are."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner
from support.chart_rules import dangling, not_restricted
from support.charts import (
    CHART,
    FIRST,
    KUBERNETES,
    ROOT,
    WORKERS,
    Object,
    config_of,
    container,
    default_config,
    helm,
    loader,
    mappings,
    named,
    objects,
    pods,
    rendered,
    selects,
)
from support.http_asking import asking

from sfm_stream.cli.main import cli
from sfm_stream.composition import kept_stopped
from sfm_stream.composition.kept_stopped import STAYS_STOPPED
from sfm_stream.config.tables import ServeTable
from sfm_stream.errors import ConfigError
from sfm_stream.serve.app import make_app
from sfm_stream.workers import loop

EVERYTHING = ("-f", CHART / "ci" / "everything-values.yaml")
MINIMAL = ("-f", CHART / "ci" / "minimal-values.yaml")
SETS: dict[str, tuple[str | Path, ...]] = {
    "defaults": (),
    "first start": FIRST,
    "minimal": MINIMAL,
    "everything": EVERYTHING,
}
every_set = pytest.mark.parametrize("values", SETS.values(), ids=SETS)
OURS = {"PodMonitor", "ServiceMonitor", "PrometheusRule"}
"""Kinds that the Prometheus operator brings; no schema of Kubernetes has them."""


@pytest.mark.parametrize("values", SETS.values(), ids=SETS)
def test_helm_finds_nothing_to_say(values):
    done = helm("lint", "--strict", "--quiet", "--kube-version", KUBERNETES, CHART, *values)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr


@every_set
@pytest.mark.parametrize("version", ["1.31.0", KUBERNETES])
def test_every_object_is_one_of_kubernetes(values, version):
    found = [each for each in objects(*values) if each["kind"] not in OURS]
    assert len(found) >= 3
    for each in found:
        kubernetes_validate.validate(each, version, strict=True)


def test_the_schemas_of_kubernetes_refuse_what_is_misspelt():
    worker = named(objects(), "Deployment", "-ingest")
    container(worker["spec"]["template"])["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readinesProbe"):
        kubernetes_validate.validate(worker, KUBERNETES, strict=True)


def test_the_chart_is_of_this_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert chart["version"] == chart["appVersion"] == project["version"]


def test_a_package_of_the_chart_makes_the_same(tmp_path):
    """Alerts and dashboards lie elsewhere, and are in it."""
    done = helm("package", CHART, "--destination", tmp_path)
    assert done.returncode == 0, done.stderr
    [package] = tmp_path.glob("*.tgz")
    done = helm("template", "counts", package, "--kube-version", KUBERNETES, *EVERYTHING)
    assert done.stdout == rendered(*EVERYTHING)


def test_the_image_starts_the_command_as_the_user_of_the_pods():
    """Pods have arguments alone, so that the command is the image's."""
    image = (ROOT / "Dockerfile").read_text("utf-8")
    assert 'ENTRYPOINT ["sfm-stream"]' in image
    [user] = re.findall(r"^USER (\d+):\1$", image, re.M)
    for pod in pods(objects()).values():
        assert "command" not in container(pod)
        assert pod["spec"]["securityContext"]["runAsUser"] == int(user)


@pytest.mark.parametrize("left", [*WORKERS, "serve"])
def test_a_component_may_be_alone(left):
    """In a release of its own, with a user of its own."""
    off = [f"{each}.enabled=false" for each in (*WORKERS, "serve") if each != left]
    found = objects("--set", ",".join(off))
    assert list(pods(found)) == [left]
    assert dangling(found) == []
    assert len([each for each in found if each["kind"] in ("NetworkPolicy", "PodDisruptionBudget")]) == 2


def test_each_set_has_its_components():
    assert set(pods(objects())) == {*WORKERS, "serve"}
    assert set(pods(objects(*FIRST))) == {*WORKERS, "serve", "first-start"}
    assert set(pods(objects(*MINIMAL))) == {"ingest", "rollup"}
    assert {each["kind"] for each in objects(*MINIMAL)} == {"ConfigMap", "Deployment"}
    assert {each["kind"] for each in objects(*EVERYTHING)} >= OURS | {"Job", "NetworkPolicy", "PodDisruptionBudget"}


# Hardening


@every_set
def test_pods_are_restricted(values):
    for component, pod in pods(objects(*values)).items():
        assert not_restricted(pod) == [], component


@pytest.mark.parametrize(
    "loosened",
    [
        lambda pod: pod["spec"]["securityContext"].pop("runAsNonRoot"),
        lambda pod: pod["spec"]["securityContext"].update(runAsUser=0),
        lambda pod: pod["spec"]["securityContext"].pop("seccompProfile"),
        lambda pod: pod["spec"].pop("automountServiceAccountToken"),
        lambda pod: pod["spec"].update(hostNetwork=True),
        lambda pod: pod["spec"]["volumes"].append({"name": "host", "hostPath": {"path": "/"}}),
        lambda pod: container(pod)["securityContext"].pop("allowPrivilegeEscalation"),
        lambda pod: container(pod)["securityContext"]["capabilities"].update(add=["NET_RAW"]),
        lambda pod: container(pod)["securityContext"].pop("readOnlyRootFilesystem"),
        lambda pod: container(pod)["resources"].pop("limits"),
        lambda pod: container(pod).update(env=[{"name": "PASSWORD", "value": "x"}]),
    ],
)
def test_a_pod_that_is_loosened_is_found(loosened):
    pod = pods(objects())["ingest"]
    loosened(pod)
    assert len(not_restricted(pod)) == 1


def test_secrets_are_files_of_secrets_that_are_there_for_those_who_need_them():
    found = objects(*EVERYTHING)
    assert not [each for each in found if each["kind"] == "Secret"]
    for component, pod in pods(found).items():
        volumes = {each["name"]: each["secret"] for each in pod["spec"]["volumes"] if "secret" in each}
        mounts = {each["mountPath"]: volumes.get(each["name"]) for each in container(pod)["volumeMounts"]}
        owner = "ingest" if component == "first-start" else component
        assert mounts["/secrets/kafka"] == {"secretName": f"kafka-{owner}", "defaultMode": 0o440}
        assert mounts["/secrets/hash"]["secretName"] == "hash-key"
        assert pod["spec"]["securityContext"]["fsGroup"] == pod["spec"]["securityContext"]["runAsUser"]


# Who may reach what


def reachable(found: Sequence[Object], component: str) -> dict[str, object]:
    """Name of a port of a component to the peers that its policy lets in; a port that is left out lets nobody in."""
    labels = pods(found)[component]["metadata"]["labels"]
    policies = [
        each["spec"]
        for each in found
        if each["kind"] == "NetworkPolicy" and selects(each["spec"]["podSelector"]["matchLabels"], labels)
    ]
    assert policies, f"{component}: no policy, so that everybody is let in"
    assert all("Ingress" in policy["policyTypes"] for policy in policies)
    let_in: dict[str, object] = {}
    for rule in (rule for policy in policies for rule in policy["ingress"]):
        for port in rule.get("ports") or [{"port": "every port"}]:
            let_in[port["port"]] = rule.get("from") or "everybody"
    return let_in


PROMETHEUS = [
    {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}},
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "prometheus"}},
    }
]


def test_by_default_prometheus_alone_reaches_anything():
    found = objects()
    assert {component: reachable(found, component) for component in pods(found)} == {
        **{worker: {"operator": PROMETHEUS} for worker in WORKERS},
        "serve": {"serve": PROMETHEUS},
    }


def test_the_public_ports_are_opened_by_choice():
    found = objects(*EVERYTHING)
    assert reachable(found, "rollup") == {"operator": PROMETHEUS, "public": [{"namespaceSelector": {}}]}
    ingress = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}
    assert reachable(found, "serve") == {"serve": [*PROMETHEUS, ingress]}
    assert reachable(found, "ingest") == {"operator": PROMETHEUS}


def test_no_prometheus_is_nobody_and_not_everybody():
    found = objects("--set-json", "networkPolicy.prometheus=[]")
    assert [reachable(found, component) for component in pods(found)] == [{}] * 4


@every_set
def test_no_service_leads_to_the_operator_port(values):
    services = [each["spec"] for each in objects(*values) if each["kind"] == "Service"]
    assert {port["targetPort"] for spec in services for port in spec["ports"]} <= {"serve", "public"}


def test_who_may_be_reached_can_be_limited_also_for_the_first_start():
    found = objects(*EVERYTHING)
    policies = [each["spec"] for each in found if each["kind"] == "NetworkPolicy"]
    assert {policy["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for policy in policies} == set(
        pods(found)
    )
    for policy in policies:
        dns, brokers = policy["egress"]
        assert [port["port"] for port in dns["ports"]] == [53, 53]
        assert brokers["to"] == [{"ipBlock": {"cidr": "10.20.0.0/24"}}]


# Names that lead to something


@every_set
def test_every_selector_selects_and_every_port_is_there(values):
    assert dangling(objects(*values)) == []


@pytest.mark.parametrize("kind", ["Deployment", "Service", "NetworkPolicy", "PodDisruptionBudget", "PodMonitor"])
def test_a_selector_that_selects_nothing_is_found(kind):
    found = objects(*EVERYTHING)
    planted = next(each for each in found if each["kind"] == kind)["spec"]
    selector = planted.get("selector", planted.get("podSelector"))
    selector.get("matchLabels", selector)["app.kubernetes.io/name"] = "another"
    assert dangling(found)


@pytest.mark.parametrize("kind", ["Service", "PodMonitor", "ServiceMonitor"])
def test_a_port_that_is_not_there_is_found(kind):
    found = objects(*EVERYTHING)
    planted = next(each for each in found if each["kind"] == kind)["spec"]
    for part in mappings(planted):
        if isinstance(part.get("port"), str) or "targetPort" in part:
            part.update(port="nowhere", targetPort="nowhere")
    assert dangling(found)


def test_the_monitors_keep_the_two_trust_domains_apart():
    found = objects(*EVERYTHING)
    operator = named(found, "PodMonitor", "-operator")["spec"]
    assert [each["port"] for each in operator["podMetricsEndpoints"]] == ["operator"]
    assert operator["selector"]["matchExpressions"][0]["values"] == list(WORKERS)
    assert [each["port"] for each in named(found, "ServiceMonitor")["spec"]["endpoints"]] == ["public"]


def test_serve_is_scraped_where_its_alerts_stand_and_by_a_name_that_it_answers():
    found = objects(*EVERYTHING)
    monitor = named(found, "PodMonitor", "-serve")
    assert monitor["metadata"]["labels"]["prometheus"] == "operators"
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    serve = pods(found)["serve"]
    listen = next(argument for argument in container(serve)["args"] if argument.startswith("--listen="))
    settings = tomllib.loads(config_of(found, serve))["serve"]
    assert settings["hosts"] == ["counts.example"]
    app = make_app({}, ServeTable(**settings | {"listen": listen.partition("=")[2]}))
    with asking(app) as client:
        scraped = client.get(endpoint["path"], headers={"host": "10.1.2.3:8500"})
    assert (endpoint["port"], scraped.status_code) == ("serve", 200)
    without = objects("--set", "serve.enabled=false,podMonitor.enabled=true")
    assert named(without, "PodMonitor")["metadata"]["name"].endswith("-operator")


def test_the_alerts_are_those_that_are_tested():
    """tests/project/test_alerts.py has promtool run them."""
    groups = named(objects(*EVERYTHING), "PrometheusRule")["spec"]["groups"]
    files = [yaml.safe_load((ROOT / "deploy" / file).read_text("utf-8")) for file in ("alerts.yml", "recording.yml")]
    assert groups == [group for file in files for group in file["groups"]]
    assert any(rule["expr"] == "sfm_stopped_exit_code > 0" for group in groups for rule in group["rules"])


def test_each_domain_has_its_dashboard():
    found = objects(*EVERYTHING)
    for domain, who in (("operator", "operators"), ("public", "readers")):
        held = named(found, "ConfigMap", f"-dashboard-{domain}")
        assert held["metadata"]["labels"]["grafana"] == who
        [text] = held["data"].values()
        assert json.loads(text) == json.loads((ROOT / "deploy/grafana" / f"{domain}.json").read_text("utf-8"))


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"ports": [{"port": "operator"}]}, "everybody"),
        ({"from": [], "ports": [{"port": "operator"}]}, "everybody"),
        ({"from": [{"podSelector": {}}], "ports": [{"port": "operator"}]}, [{"podSelector": {}}]),
    ],
)
def test_an_operator_port_that_is_opened_is_found(rule, said):
    found = objects()
    named(found, "NetworkPolicy", "-ingest")["spec"]["ingress"] = [rule]
    assert reachable(found, "ingest") == {"operator": said}


# What runs


@every_set
def test_every_pod_has_a_configuration_that_may_run(values, tmp_path):
    found, loaded = objects(*values), loader(tmp_path)
    for pod in pods(found).values():
        config = loaded(config_of(found, pod))
        assert config.kafka.topic == "page-views"
        assert config.budget.epsilon_per_day <= config.settings.privacy.max_epsilon_per_item_day


def test_a_component_may_have_a_user_of_its_own(tmp_path):
    found, loaded = objects(*EVERYTHING), loader(tmp_path)
    users = {name: loaded(config_of(found, pod)).kafka.username for name, pod in pods(found).items()}
    assert users.pop("rollup") == "page-visitors-rollup"
    assert set(users.values()) == {"page-visitors"}


@every_set
def test_the_arguments_are_those_of_the_command_line(values, monkeypatch):
    """Parsed as they are, up to the configuration, which is not there under this name."""
    kept = []
    monkeypatch.setattr(kept_stopped, "run_kept_stopped", lambda *taken: kept.append(taken) or 4)
    for component, pod in pods(objects(*values)).items():
        command = container(pod)["args"]
        if component in WORKERS:
            assert CliRunner().invoke(cli, command).exit_code == 4
            worker, operator, note = kept.pop()
            assert worker[0] == component
            assert worker[2] == f"--operator={operator}", "the process in its place answers where the worker did"
            assert note.parent.as_posix() in writable(pod)
            command = list(worker)
        assert command[:2] == [component, "/pipeline/app.toml"]
        done = CliRunner().invoke(cli, command)
        assert done.exit_code == 1, done.output
        assert isinstance(done.exception, ConfigError), done.output
        assert "No such file" in str(done.exception)


def writable(pod: Object) -> set[str]:
    empty = {each["name"] for each in pod["spec"]["volumes"] if "emptyDir" in each}
    return {each["mountPath"] for each in container(pod)["volumeMounts"] if each["name"] in empty}


def test_the_publisher_copies_where_there_is_one():
    assert "--no-publish" in container(pods(objects())["ingest"])["args"]
    assert "--no-publish" not in container(pods(objects(*MINIMAL))["ingest"])["args"]


@every_set
def test_probes_ask_the_port_of_the_pod_that_has_health(values):
    """Its number is the one of the listener."""
    found = objects(*values)
    for component, pod in pods(found).items():
        own = container(pod)
        probes = [own.get(f"{name}Probe") for name in ("startup", "liveness", "readiness")]
        if component == "first-start":
            assert probes == [None] * 3
            continue
        assert [probe["httpGet"]["path"] for probe in probes] == ["/live", "/live", "/ready"]
        [port] = {probe["httpGet"]["port"] for probe in probes}
        number = next(each["containerPort"] for each in own["ports"] if each["name"] == port)
        listens = tomllib.loads(config_of(found, pod))
        assert any(argument.endswith(f":{number}") for argument in own["args"])
        cache = Path("/pipeline", listens.get("serve", {}).get("cache", "serve-cache")).as_posix()
        assert component != "serve" or cache in writable(pod)
        public = [each["containerPort"] for each in own["ports"] if each["name"] == "public"]
        told = listens.get("metrics", {}).get("public", "") if component == "rollup" else ""
        assert public == ([int(told.rpartition(":")[2])] if told else [])


def test_a_pod_that_is_stopped_has_the_time_that_a_worker_takes():
    for values in SETS.values():
        for pod in pods(objects(*values)).values():
            assert pod["spec"]["terminationGracePeriodSeconds"] > loop._LEAVE_S + 5


def test_the_first_start_is_a_job_that_comes_before_and_is_not_tried_again_after_a_refusal():
    job = named(objects(*FIRST), "Job")
    assert "pre-install" in job["metadata"]["annotations"]["helm.sh/hook"]
    assert job["metadata"]["name"].endswith("-1")
    refused, _ = job["spec"]["podFailurePolicy"]["rules"]
    assert refused["action"] == "FailJob"
    assert set(refused["onExitCodes"]["values"]) == STAYS_STOPPED
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert not any("--first-start" in container(pod)["args"] for pod in pods(objects(*FIRST)).values())


# What an upgrade does


def test_the_job_of_an_epoch_has_a_name_of_its_own(tmp_path):
    (tmp_path / "app.toml").write_text(default_config().replace("epoch = 1\n", "epoch = 20260131\n"))
    job = named(objects("--set-file", f"config={tmp_path / 'app.toml'}", *FIRST), "Job")
    assert job["metadata"]["name"] == "counts-sfm-stream-first-start-20260131"


def without_first_start(*values: str | Path) -> dict[str, Object]:
    return {name: pod for name, pod in pods(objects(*values)).items() if name != "first-start"}


def test_pods_are_made_anew_where_their_configuration_changes_and_only_there(tmp_path):
    changed = tmp_path / "app.toml"
    changed.write_text(default_config().replace('grace = "1m"', 'grace = "2m"'))
    before, after = without_first_start(), without_first_start("--set-file", f"config={changed}")
    assert all(before[name] != after[name] for name in before)
    for name in before:
        stripped = [deepcopy(each[name]) for each in (before, after)]
        for each in stripped:
            del each["metadata"]["annotations"]["checksum/config"]
        assert stripped[0] == stripped[1]


def test_a_first_start_leaves_the_workers_alone():
    assert without_first_start(*FIRST) == without_first_start()


def test_another_version_of_the_chart_alone_starts_no_worker_again():
    """Each restart reads the open windows again, a day of them where days are released."""
    for pod in pods(objects()).values():
        assert not [label for label in pod["metadata"]["labels"] if "chart" in label or "version" in label]
