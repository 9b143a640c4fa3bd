"""What is in deploy/ and the Dockerfile fits the code; the images themselves are built elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from sfm_stream.cli.main import cli
from sfm_stream.config import load_config
from sfm_stream.metrics import DEFINITIONS

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_the_example_configuration_is_valid_and_stays_within_its_own_limit():
    config = load_config(DEPLOY / "app.toml")
    assert config.unit == "removed"
    assert config.budget.epsilon_per_day <= config.settings.privacy.max_epsilon_per_item_day


def test_every_file_that_is_mounted_is_there():
    mounts = [
        str(volume).split(":")[0] for service in COMPOSE["services"].values() for volume in service.get("volumes", [])
    ]
    files = [mount for mount in mounts if mount.startswith(".")]
    assert len(files) >= 3
    assert all((DEPLOY / file).is_file() for file in files)


def test_the_commands_of_compose_are_commands():
    found = [
        service["command"] for service in COMPOSE["services"].values() if service.get("image") == "sfm-stream:local"
    ]
    assert {command[0] for command in found} == {"ingest", "rollup"}
    for name, _, *options in found:
        text = CliRunner().invoke(cli, [name, "--help"]).output
        assert all(option in text for option in options)


def test_only_loopback_ports_of_the_host_are_opened():
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]
    assert ports and all(port.startswith("127.0.0.1:") for port in ports)


def test_images_have_versions():
    images = [service["image"] for service in COMPOSE["services"].values()]
    images += re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.M)
    assert all(re.search(r":\w*\d|:local", image) for image in images), images


@pytest.mark.parametrize("file", ["alerts.yml", "prometheus.yml"])
def test_every_metric_that_is_asked_for_exists(file):
    text = (DEPLOY / file).read_text()
    yaml.safe_load(text)
    asked = set(re.findall(r"\bsfm_[a-z_]+", text))
    assert asked <= {definition.name for definition in DEFINITIONS}
    assert asked or file == "prometheus.yml"


def test_the_image_runs_as_nobody_in_particular_and_says_whether_it_lives():
    text = (ROOT / "Dockerfile").read_text()
    assert re.search(r"^USER \d+:\d+$", text, re.M)
    assert "HEALTHCHECK" in text and "/live" in text and "STOPSIGNAL SIGTERM" in text
    ignored = (ROOT / ".dockerignore").read_text().split()
    copied = [name for names in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.M) for name in names.split()]
    assert ignored[0] == "*" and {f"!{name}" for name in copied} <= set(ignored)


def test_the_image_holds_what_a_build_of_the_package_needs():
    text = (ROOT / "pyproject.toml").read_text()
    copied = (ROOT / "Dockerfile").read_text()
    for name in re.findall(r'^(?:readme = |license-files = \[)"(\w+(?:\.md)?)"', text, re.M):
        assert name in copied
