"""On a real broker with TLS and passwords: every kind of security works, and each mistake is told in one clear line."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.kafka_nodes import free_ports
from support.kafka_runs import MINUTE_MS, START_MS, Run, closed_through, page_views, wait_until
from support.kafka_secure import MECHANISMS, SECRETS, SecureCluster
from support.patience import PATIENCE_S

pytestmark = pytest.mark.kafka
"""A cluster is called for ten seconds; the rest is the start of a process on a busy machine."""


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory, without_kafka) -> Iterator[SecureCluster]:
    from support.kafka_cluster import KafkaUnavailable

    try:
        cluster = SecureCluster(tmp_path_factory.mktemp("kafka-secure"))
    except KafkaUnavailable as problem:
        without_kafka(str(problem))
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


class Command:
    """What a command said and how it ended."""

    def __init__(self, *call: str, **env: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "sfm_stream.cli", *call],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            env=os.environ | env,
        )
        self.code, self.out = done.returncode, done.stdout
        # That merged hours and days of this pipeline are noise is true, and is said first.
        self.err = "".join(line for line in done.stderr.splitlines(True) if " are noise: " not in line)


def settings_of(cluster: SecureCluster, listener: str, mechanism: str = "PLAIN", user: str = "alice") -> str:
    """The lines of [kafka] that belong to a listener."""
    files = cluster.certificates
    tls, sasl = {"TLS": (True, False), "MUTUAL": (True, False), "SASLTLS": (True, True), "SASL": (False, True)}[
        listener
    ]
    lines = [f'security = "{"sasl_" * sasl}{"tls" if tls else "plaintext"}"']
    if tls:
        lines += [f'ca_file = "{files / "ca.pem"}"']
    if listener == "MUTUAL":
        lines += [f'certificate_file = "{files / "worker.pem"}"', f'key_file = "{files / "worker.key"}"']
    if sasl:
        lines += [f'sasl_mechanism = "{mechanism}"', f'username = "{user}"', 'password_env = "SFM_SECRET"']
    return "\n".join(lines)


@pytest.fixture(scope="module")
def run(secure: SecureCluster, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A pipeline whose topics are there and whose input has some records."""
    made = Run(secure.bootstrap, tmp_path_factory.mktemp("run"))
    made.produce(page_views(50, 5))
    return made


def config(run: Run, listener_address: str, lines: str) -> str:
    """A file of its own."""
    return str(run.config(f"{uuid.uuid4().hex}.toml", bootstrap=json.dumps([listener_address]), kafka=lines))


def check(secure: SecureCluster, run: Run, listener: str, lines: str | None = None, secret: str = SECRETS["alice"]):
    lines = settings_of(secure, listener) if lines is None else lines
    return Command("check", config(run, secure.addresses[listener], lines), SFM_SECRET=secret)


CASES = [("TLS", "PLAIN"), ("MUTUAL", "PLAIN")] + [(name, m) for name in ("SASLTLS", "SASL") for m in MECHANISMS]


@pytest.mark.parametrize(("listener", "mechanism"), CASES)
def test_check_reads_the_input_over(secure, run, listener, mechanism):
    found = check(secure, run, listener, settings_of(secure, listener, mechanism))
    assert found.code == 0, found.err
    assert "50 records looked at: ok 50" in found.out
    assert found.err == ""


def test_workers_count_over_tls_with_a_password(secure, tmp_path):
    """Groups, transactions and everything else that a pipeline asks of a cluster, by its own command."""
    own = Run(secure.bootstrap, tmp_path)
    own.produce(page_views(500, 5))
    file = config(own, secure.addresses["SASLTLS"], settings_of(secure, "SASLTLS", "SCRAM-SHA-512"))
    call = [sys.executable, "-m", "sfm_stream.cli", "ingest", file, "--first-start", "--operator", ""]
    environment = os.environ | {"SFM_SECRET": SECRETS["alice"]}
    log = tmp_path / "log"
    with log.open("w") as stderr, subprocess.Popen(call, stderr=stderr, env=environment) as worker:
        try:
            wait_until(lambda: worker.poll() is not None or _released(own), 60)
            worker.terminate()
            assert worker.wait(PATIENCE_S) == 0
        finally:
            worker.kill()
    said = log.read_text()
    assert len([*closed_through(own.read("sketches"))]) == own.partitions, said
    assert SECRETS["alice"] not in said


def _released(run: Run) -> bool:
    try:
        ends = closed_through(run.read("sketches"))
    except LookupError:
        return False
    return len(ends) == run.partitions and min(ends.values()) >= START_MS + 5 * MINUTE_MS


def refusals(secure: SecureCluster) -> dict[str, tuple[str, str, str]]:
    """Name to (address, lines of [kafka], what the line has to say)."""
    at, files = secure.addresses, secure.certificates
    tls = settings_of(secure, "TLS")
    return {
        "a closed port": (f"127.0.0.1:{free_ports(1)[0]}", "", "kafka.bootstrap"),
        "a name that is not known": ("nowhere.invalid:9092", "", "kafka.bootstrap"),
        "an unknown authority": (at["TLS"], tls.replace("ca.pem", "other-ca.pem"), "kafka.ca_file"),
        "a file that is no certificate": (
            at["TLS"],
            tls.replace(str(files / "ca.pem"), str(files / "ca.key")),
            "kafka.ca_file",
        ),
        "another host's certificate": (at["TLS"].replace("127.0.0.1", "localhost"), tls, "kafka.check_hostname"),
        "no certificate of ours": (at["MUTUAL"], tls, "kafka.certificate_file"),
        "plaintext to a port of TLS": (at["TLS"], "", "kafka.security"),
        "TLS to a port of plaintext": (secure.bootstrap, tls, "kafka.security"),
        "no password to a port that wants one": (at["SASLTLS"], tls, "kafka.security"),
        "a password to a port that wants none": (at["TLS"], settings_of(secure, "SASLTLS"), "kafka.security"),
        "a user without rights": (at["SASL"], settings_of(secure, "SASL", user="carol"), "kafka.username"),
        **{
            f"a wrong password, {mechanism}": (
                at["SASLTLS"],
                settings_of(secure, "SASLTLS", mechanism, user="dave"),
                "kafka.password_file",
            )
            for mechanism in MECHANISMS
        },
    }


@pytest.mark.parametrize("command", [("check",), ("ingest", "--operator", "")], ids=["check", "ingest"])
def test_a_mistake_is_one_line_that_names_the_setting(secure, run, command):
    """All at once: most of the time of each goes into calling a cluster that does not answer."""
    secret = SECRETS["carol"]  # right for carol, wrong for everybody else
    cases = refusals(secure)
    files = {case: config(run, address, lines) for case, (address, lines, _) in cases.items()}
    with ThreadPoolExecutor(5) as pool:
        calls = {
            case: pool.submit(Command, command[0], file, *command[1:], SFM_SECRET=secret)
            for case, file in files.items()
        }
    assert len(calls) == 11 + len(MECHANISMS)
    for case, (address, _, named) in cases.items():
        found = calls[case].result()
        print(f"\n{case}: {found.err}")
        [line] = found.err.splitlines()
        assert found.code == 7
        assert line.startswith(f"error: Kafka at {address}: ")
        assert named in line
        assert secret not in found.err + found.out


def test_a_broker_that_accepts_and_never_answers_is_given_up(run):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        found = Command("check", config(run, address, ""))
    [line] = found.err.splitlines()
    assert found.code == 7
    assert line.startswith(f"error: Kafka at {address}: ")
    assert "kafka.bootstrap" in line


def test_an_unknown_topic_is_one_line_that_names_the_setting(secure, run):
    file = run.config("no-topic.toml", topic="nobody-made-this")
    for call in (("check", str(file)), ("ingest", str(file), "--operator", "")):
        found = Command(*call)
        assert (found.code, found.err) == (3, "error: kafka.topic: there is no topic nobody-made-this\n")
