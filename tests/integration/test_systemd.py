"""The units of deploy/systemd/: systemd accepts them, and exit codes of real workers are told apart by them."""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from support.patience import PATIENCE_S
from support.programs import program

from sfm_stream import errors
from sfm_stream.composition.kept_stopped import STAYS_STOPPED

UNITS = Path(__file__).resolve().parents[2] / "deploy" / "systemd"
WORKERS = ["ingest", "publish", "rollup", "serve"]
CODES = {
    kind.exit_code for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.SfmStreamError)
}
BY_SIGNAL = {130, 143}
MOST_EXPOSED = 20
"""Tenths of what `systemd-analyze security` may say; without any of it a service has 96."""
ALSO_OF_RUNS = {"PrivateNetwork": ["yes"], "RestrictAddressFamilies": ["AF_UNIX"]}

ON_A_CLUSTER = """
[pipeline]
id = "views"
[kafka]
bootstrap = ["127.0.0.1:1"]
topic = "views-in"
timestamps = "create_time"
"""
OF_A_FILE = """
[pipeline]
id = "views"
[input]
path = "in.jsonl"
complete = true
[output]
path = "out.sqlite"
"""
ALL = """
[event]
key = "page"
item = "user"
time = "at"
time_unit = "ms"
[window]
size = "1h"
grace = "1m"
start = 2026-01-01T00:00:00Z
[privacy]
epsilon = 2
keys = "presence_is_public"
max_epsilon_per_item_day = 100
"""


def settings(name: str) -> dict[str, list[str]]:
    """The settings of the [Service] section of a unit."""
    found = defaultdict(list)
    service = (UNITS / f"sfm-stream-{name}@.service").read_text("utf-8").split("[Service]\n")[1].split("\n[")[0]
    for line in service.splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found[key].append(value)
    return dict(found)


def numbers(values: list[str]) -> set[int]:
    return {int(number) for value in values for number in value.split()}


def is_started_again(name: str, code: int) -> bool:
    """As systemd.service(5) has it of Restart=on-failure: neither what counts as success, nor what is prevented."""
    unit = settings(name)
    assert unit["Restart"] == ["on-failure"]
    succeeds = code == 0 or code in numbers(unit["SuccessExitStatus"])
    return not succeeds and code not in numbers(unit["RestartPreventExitStatus"])


def command(name: str, folder: Path) -> list[str]:
    """What a unit runs, of this installation, with the configuration app.toml of a folder."""
    unit = settings(name)
    (line,) = unit["ExecStart"]
    for assigned in unit.get("Environment", []):
        variable, _, value = assigned.partition("=")
        line = line.replace(f"${{{variable}}}", re.sub(r":\d+$", ":0", value))
    binary, *arguments = shlex.split(line)
    assert binary == "/opt/sfm-stream/bin/sfm-stream"
    return [
        sys.executable,
        "-m",
        "sfm_stream.cli",
        *(each.replace("/etc/sfm-stream/%i", str(folder / "app")) for each in arguments),
    ]


def ends(name: str, folder: Path) -> int:
    done = subprocess.run(command(name, folder), capture_output=True, text=True, timeout=PATIENCE_S)
    assert "Traceback" not in done.stderr
    return done.returncode


def after(folder: Path, code: int) -> bool:
    """Run what a run's unit does at its end, as systemd does: whether the unit would run once more."""
    unit = settings("run")
    (line,) = unit["ExecStopPost"]
    environment = {"EXIT_STATUS": str(code), "STATE_DIRECTORY": str(folder), "PATH": "/usr/bin:/bin"}
    subprocess.run(shlex.split(line.replace("$$", "$")), env=environment, check=True, timeout=PATIENCE_S)
    (condition,) = unit["ExecCondition"]
    asked = shlex.split(condition.replace("%S/sfm-stream/%i", str(folder)))
    return subprocess.run(asked, timeout=PATIENCE_S).returncode == 0


@pytest.mark.parametrize("name", WORKERS)
def test_what_a_person_has_to_look_at_is_not_started_again_and_all_else_is(name):
    assert {code for code in CODES | BY_SIGNAL | {0} if is_started_again(name, code)} == CODES - STAYS_STOPPED
    assert {1, 7} <= CODES - STAYS_STOPPED


def test_a_worker_whose_configuration_is_wrong_stays_stopped(tmp_path):
    (tmp_path / "app.toml").write_text(ON_A_CLUSTER + ALL + "sise = 1")
    for name in ("ingest", "publish", "rollup"):
        code = ends(name, tmp_path)
        assert code == errors.ConfigError.exit_code
        assert not is_started_again(name, code)


def test_a_worker_that_finds_no_cluster_is_started_again(tmp_path):
    (tmp_path / "app.toml").write_text(ON_A_CLUSTER + ALL)
    code = ends("rollup", tmp_path)
    assert code == errors.BrokerError.exit_code
    assert is_started_again("rollup", code)


def test_a_run_that_a_person_has_to_look_at_is_not_repeated_by_the_timer(tmp_path):
    (tmp_path / "app.toml").write_text(OF_A_FILE + ALL)
    (tmp_path / "in.jsonl").write_text('{"page": "home", "user": "u1", "at": 1767225600000}\n')
    assert after(tmp_path, ends("run", tmp_path)), "it ended with 0"
    (tmp_path / "in.jsonl").write_text("{}\n" * 20)
    code = ends("run", tmp_path)
    assert code == errors.StateError.exit_code, "another input than the one that was counted"
    assert not after(tmp_path, code)
    assert (tmp_path / "stopped").read_text() == f"exit code {code}\n"


@pytest.mark.parametrize("code", sorted(CODES | BY_SIGNAL))
def test_the_note_of_a_run_is_for_the_codes_that_stay_stopped(code, tmp_path):
    assert after(tmp_path, code) == (code not in STAYS_STOPPED)


def test_all_units_are_closed_alike():
    def closed(name: str) -> dict[str, list[str]]:
        text = (UNITS / f"sfm-stream-{name}@.service").read_text("utf-8")
        names = re.findall(r"^(\w+)=", text.split("# What it may do")[1].split("\n[")[0], re.M)
        return {each: settings(name)[each] for each in names}

    assert all(closed(name) == closed("ingest") for name in WORKERS)
    assert closed("run") == closed("ingest") | ALSO_OF_RUNS


@pytest.mark.parametrize("name", [*WORKERS, "run"])
def test_secret_state_is_not_written_to_a_disk(name):
    unit = settings(name)
    assert (unit["LimitCORE"], unit["MemorySwapMax"]) == (["0"], ["0"])
    assert unit["MemoryMax"]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units as they are installed for the pipeline `views`, with a program that is there."""
    for file in UNITS.glob("sfm-stream-*@.*"):
        text = file.read_text("utf-8").replace("/opt/sfm-stream/bin/sfm-stream", sys.executable)
        (tmp_path / file.name).write_text(text)
        (tmp_path / file.name.replace("@", "@views")).symlink_to(file.name)
    return tmp_path


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program("systemd-analyze"), *arguments], capture_output=True, text=True, timeout=PATIENCE_S)


def test_systemd_accepts_the_units(installed):
    units = sorted(map(str, installed.glob("*@views.*")))
    assert len(units) == 6
    done = analyze("verify", *units)
    assert (done.returncode, done.stderr) == (0, "")
    broken = installed / "sfm-stream-ingest@.service"
    broken.write_text(broken.read_text().replace("RestartPreventExitStatus=2", "RestartPreventExitStatus=two"))
    assert "Failed to parse value" in analyze("verify", str(installed / "sfm-stream-ingest@views.service")).stderr


@pytest.mark.parametrize("name", [*WORKERS, "run"])
def test_systemd_finds_little_that_a_service_is_exposed_by(installed, name):
    unit = installed / f"sfm-stream-{name}@views.service"
    judged = ("security", "--offline=true", "--no-pager", f"--threshold={MOST_EXPOSED}")
    assert analyze(*judged, str(unit)).returncode == 0
    opened = re.sub(
        r"^(SystemCallFilter|CapabilityBoundingSet|PrivateUsers|PrivateDevices)=.*\n", "", unit.read_text(), flags=re.M
    )
    unit.resolve().write_text(opened)
    assert analyze(*judged, str(unit)).returncode != 0
