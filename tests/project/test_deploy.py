"""What is in deploy/ and the Dockerfile fits the code; the images themselves are built elsewhere."""

from __future__ import annotations

import json
import re
from copy import copy
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from sfm_stream.cli.keep_stopped import keep_stopped
from sfm_stream.cli.main import cli
from sfm_stream.cli.noise_warnings import noise_of
from sfm_stream.config.config import load_config, parse_config
from sfm_stream.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
README = (DEPLOY / "README.md").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
OURS = {name: service for name, service in COMPOSE["services"].items() if service.get("image") == "sfm-stream:local"}


def test_the_example_configuration_is_valid_and_stays_within_its_own_limit():
    config = load_config(DEPLOY / "app.toml")
    assert config.unit == "removed"
    assert config.budget.epsilon_per_day <= config.settings.privacy.max_epsilon_per_item_day


def test_what_the_example_releases_is_no_noise_and_its_days_are_from_raw():
    config = load_config(DEPLOY / "app.toml")
    assert noise_of(config) == []
    assert [(span.name, span.epsilon) for span in config.budget.spans] == [("hour", Decimal("0.1")), ("day", 1)]
    assert config.budget.epsilon_per_day == Decimal("5.9")


def test_the_page_says_what_the_plan_says():
    (said,) = re.findall(r"```sh\n(sfm-stream plan .+?)```", README, re.S)
    name, *arguments = said.replace("deploy/app.toml", str(DEPLOY / "app.toml")).split()[1:]
    forecast = json.loads(CliRunner().invoke(cli, [name, *arguments, "--json"]).stdout)
    hours, days = forecast["spans"]
    assert (forecast["epsilon_of_person"], forecast["epsilon_a_day"]) == ("1.9", "5.9")
    assert (hours["epsilon_a_day"], days["epsilon_a_day"]) == ("4.8", "1.1")
    assert (round(hours["selected_half"], -1), round(days["selected_nearly"], -1)) == (180, 240)
    hour, day, week = (round(100 * answer["typical_error"], 1) for answer in forecast["answers"])
    assert f"2,000 users is {day} % off and an hour of 300 is {hour} %" in README
    assert f"A week is rough ({week:.0f} %)" in README


def test_the_change_for_a_first_look_is_within_its_limit():
    text = (DEPLOY / "app.toml").read_text()
    (size,) = re.findall(r"set `size = (\S+?)`", README)
    (limit,) = re.findall(r"`max_epsilon_per_item_day = (\d+)`", README)
    changed = text.replace('size = "hour"', f"size = {size}").replace(
        "max_epsilon_per_item_day = 6 ", f"max_epsilon_per_item_day = {limit} "
    )
    budget = parse_config(changed, DEPLOY).budget
    assert [span.name for span in budget.spans] == ["5m", "day"]
    assert Decimal(limit) - 5 < budget.epsilon_per_day <= Decimal(limit)


def test_every_file_that_is_mounted_is_there():
    mounts = [
        str(volume).split(":")[0] for service in COMPOSE["services"].values() for volume in service.get("volumes", [])
    ]
    files = [mount for mount in mounts if mount.startswith(".")]
    assert len(files) >= 3
    assert all((DEPLOY / file).exists() for file in files)


def kept(service: dict[str, Any]) -> list[str]:
    """The command that keep-stopped runs in a service. Its own options are parsed, and nothing is run."""
    name, *arguments = service["command"]
    assert name == "keep-stopped"
    # Of a copy: a command keeps the help option of its first context, and this one has no parent that says -h.
    context = copy(keep_stopped).make_context(name, list(arguments))
    return list(context.params["command"])


def test_the_commands_of_compose_are_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = [kept(service) for service in OURS.values()]
    assert {command[0] for command in found} == {"ingest", "rollup", "serve"}
    for name, *arguments in found:
        # Parsed as it is, up to the configuration, which is not there under this name.
        done = CliRunner().invoke(cli, [name, *arguments])
        assert done.exit_code == 1, done.output
        assert isinstance(done.exception, ConfigError), done.output


def test_only_loopback_ports_of_the_host_are_opened():
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_page_says_who_may_reach_each_port():
    said = re.findall(r"^\| (127\.0\.0\.1:\d+) \| .+ \| .+ \|$", README, re.M)
    opened = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]
    assert sorted(said) == sorted(port.rpartition(":")[0] for port in opened)


def test_images_have_versions():
    images = [service["image"] for service in COMPOSE["services"].values()]
    images += re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.M)
    assert all(re.search(r":\w*\d|:local", image) for image in images), images
    pom = (ROOT / "tests" / "support" / "kafka" / "pom.xml").read_text()
    version = re.search(r"<kafka.version>(.+?)</kafka.version>", pom)[1]
    assert {image for image in images if "kafka" in image} == {f"apache/kafka:{version}"}, "not the tested one"


def test_prometheus_asks_where_the_workers_listen():
    metrics = load_config(DEPLOY / "app.toml").metrics
    jobs = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    [found] = [each for job in jobs for each in job.get("dns_sd_configs", [])]
    assert set(found["names"]) <= set(COMPOSE["services"])
    assert metrics.operator == f"0.0.0.0:{found['port']}"
    public = f"rollup:{metrics.public.rpartition(':')[2]}"
    targets = [target for job in jobs for each in job.get("static_configs", []) for target in each["targets"]]
    served = load_config(DEPLOY / "app.toml").settings.serve
    assert targets == [public, f"serve:{served.listen.rpartition(':')[2]}"]
    assert "serve" in served.hosts, "by this name it is asked"
    [job] = yaml.safe_load((DEPLOY / "prometheus-public.yml").read_text())["scrape_configs"]
    assert job == {"job_name": "sfm-stream-public", "static_configs": [{"targets": [public]}]}
    assert all("sfm-stream" in job["job_name"] for job in jobs), "the alert WorkerGone is of these"


def test_the_public_grafana_reaches_neither_workers_nor_exact_numbers():
    services = COMPOSE["services"]
    public = set(services["grafana-public"]["networks"])
    assert {name for name, each in services.items() if public & set(each["networks"])} == {
        "grafana-public",
        "prometheus-public",
    }
    assert "prometheus.yml" not in "".join(services["grafana-public"]["volumes"])


@pytest.mark.parametrize(("name", "grafana"), [("operator", "grafana"), ("public", "grafana-public")])
def test_each_grafana_is_given_the_dashboard_and_the_prometheus_of_its_domain(name, grafana):
    service, folder = COMPOSE["services"][grafana], DEPLOY / "grafana" / "provisioning" / name
    [source] = yaml.safe_load((folder / "datasources" / "prometheus.yml").read_text())["datasources"]
    host = {"operator": "prometheus", "public": "prometheus-public"}[name]
    assert source["url"] == f"http://{host}:9090"
    assert set(service["networks"]) & set(COMPOSE["services"][host]["networks"])
    [provider] = yaml.safe_load((folder / "dashboards" / "sfm-stream.yml").read_text())["providers"]
    mounted = dict(volume.split(":")[:2] for volume in service["volumes"])
    assert mounted == {
        f"./grafana/provisioning/{name}": "/etc/grafana/provisioning",
        f"./grafana/{name}.json": f"{provider['options']['path']}/{name}.json",
    }
    assert service["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] in mounted.values()
    assert service["environment"]["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"


def test_health_checks_ask_the_listener_of_each():
    config = load_config(DEPLOY / "app.toml")
    for worker in OURS.values():
        address = config.settings.serve.listen if kept(worker)[0] == "serve" else config.metrics.operator
        *_, script = worker["healthcheck"]["test"]
        compile(script, "healthcheck", "exec")
        assert f"127.0.0.1:{address.rpartition(':')[2]}/ready" in script
    [line] = re.findall(r"^  CMD (\[.+\])$", (ROOT / "Dockerfile").read_text(), re.M)
    *_, script = json.loads(line)
    compile(script, "HEALTHCHECK", "exec")
    assert f"'{config.metrics.operator.rpartition(':')[2]}'" in script


def test_answers_are_served_where_a_port_is_published():
    serve, (port,) = load_config(DEPLOY / "app.toml").settings.serve, OURS["serve"]["ports"]
    assert port.rpartition(":")[2] == serve.listen.rpartition(":")[2]
    assert [volume for volume in OURS["serve"]["volumes"] if volume.endswith(f":{serve.cache}")]
    assert f"-o 10001 -g 10001 -m 0700 {serve.cache}" in (ROOT / "Dockerfile").read_text()
    assert set(serve.hosts) == {"serve"} & COMPOSE["services"].keys()


def test_nothing_that_stopped_for_a_reason_is_started_again_by_itself():
    """keep-stopped does not end then; after all else that is not success Compose starts a worker again."""
    assert OURS
    assert all(kept(worker) and worker["restart"] == "on-failure" for worker in OURS.values())


def size_of(text: str) -> int:
    return int(text[:-1]) << {"m": 20, "g": 30}[text[-1]]


def test_every_service_has_limits_and_no_worker_writes_secret_state_to_a_disk():
    for name, service in COMPOSE["services"].items():
        assert name == "topic" or size_of(service["mem_limit"]) >= 256 << 20
    for worker in OURS.values():
        assert worker["memswap_limit"] == worker["mem_limit"]
        assert worker["ulimits"]["core"] == 0
        assert worker["read_only"]
        assert worker["tmpfs"], "where a question keeps what does not fit into memory"
    [partitions] = re.findall(r"--partitions=(\d+)", " ".join(COMPOSE["services"]["topic"]["command"]))
    raw_bytes = load_config(DEPLOY / "app.toml").limits.max_raw_bytes * int(partitions)
    assert size_of(OURS["ingest"]["mem_limit"]) >= 2 * raw_bytes


def test_the_image_runs_as_nobody_in_particular_and_says_whether_it_lives():
    text = (ROOT / "Dockerfile").read_text()
    assert re.search(r"^USER \d+:\d+$", text, re.M)
    assert "HEALTHCHECK" in text
    assert "/live" in text
    assert "STOPSIGNAL SIGTERM" in text
    ignored = (ROOT / ".dockerignore").read_text().split()
    copied = [name for names in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.M) for name in names.split()]
    assert ignored[0] == "*"
    assert {f"!{name}" for name in copied} <= set(ignored)


def test_the_image_holds_what_a_build_of_the_package_needs():
    text = (ROOT / "pyproject.toml").read_text()
    copied = (ROOT / "Dockerfile").read_text()
    for name in re.findall(r'^(?:readme = |license-files = \[)"(\w+(?:\.md)?)"', text, re.M):
        assert name in copied
