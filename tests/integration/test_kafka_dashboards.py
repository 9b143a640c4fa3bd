"""Every panel and every alert, asked of a real Prometheus that scrapes real workers by the configuration of deploy/."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from support.dashboards import choices, expressions, panels
from support.kafka_runs import MINUTE_MS, START_MS, Event, Run, page_views
from support.kafka_topics import produce
from support.patience import PATIENCE_S, until
from support.programs import program

from docs.dashboard_panels import OPERATOR, PUBLIC

pytestmark = pytest.mark.kafka
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
MAY_BE_EMPTY = {
    panel.title for rows in (OPERATOR, PUBLIC) for row in rows for panel in row.panels if panel.may_be_empty
}
EARLIER, BROKEN, LATER = 2000, 30, 400
READ = EARLIER + BROKEN + LATER + 1
QUICKLY = {"scrape_interval": "1s", "evaluation_interval": "1s"}


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


class Watched(NamedTuple):
    """Workers that run. operator, public: the Prometheus of each domain. rollup: a worker that may be killed."""

    operator: str
    public: str
    rollup: subprocess.Popen[bytes]


@contextmanager
def process(log: Path, *call: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as said:
        started = subprocess.Popen(call, stdout=said, stderr=said)
        try:
            yield started
        finally:
            started.kill()
            started.wait()


def prometheus(folder: Path, name: str, targets: dict[str, list[str]]) -> tuple[str, list[str]]:
    """(address, call) of a Prometheus as deploy/ configures it, which asks these targets, by job, every second."""
    config = yaml.safe_load((DEPLOY / f"{name}.yml").read_text("utf-8"))
    assert [job["job_name"] for job in config["scrape_configs"]] == list(targets)
    config["global"] |= QUICKLY
    config["rule_files"] = [str(DEPLOY / file) for file in config.get("rule_files", [])]
    config["scrape_configs"] = [
        {"job_name": job, "static_configs": [{"targets": listed}]} for job, listed in targets.items()
    ]
    file, address = folder / f"{name}.yml", free_address()
    file.write_text(yaml.safe_dump(config))
    data = f"--storage.tsdb.path={folder / name}"
    return address, [program("prometheus"), f"--config.file={file}", data, f"--web.listen-address={address}"]


def asked(server: str, expression: str) -> list[dict[str, Any]]:
    """The series that promtool has for an expression. Fails where it is none."""
    call = [program("promtool"), "query", "-o", "json", "instant", f"http://{server}", expression]
    done = subprocess.run(call, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, f"{expression}: {done.stderr}"
    return list(json.loads(done.stdout))


def answers(server: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{server}/-/ready", timeout=PATIENCE_S) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="module")
def watched(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A pipeline of two to three hours, in which some records are broken; windows to now are closed by now."""
    folder = tmp_path_factory.mktemp("watched")
    ingest_at, rollup_at, public_at, serve_at = (free_address() for _ in range(4))
    run = Run(kafka, folder, settings={"metrics": f'[metrics]\npublic = "{public_at}"', "size": "5m"})
    # Up to now: a pause of the input would be held back until a window behind it closes.
    events = page_views(EARLIER, (int(time.time() * 1000) - START_MS) // MINUTE_MS)
    run.produce(events)
    produce(kafka, run.topic, [(b"p1", b"{", events[-1].arrival_ms, number % 3) for number in range(BROKEN)])
    config, command = str(run.config()), [sys.executable, "-m", "sfm_stream.cli"]
    operator_targets = {
        "sfm-stream-operator": [ingest_at, rollup_at],
        "sfm-stream-public": [public_at],
        "sfm-stream-serve": [serve_at],
    }
    operator, operator_call = prometheus(folder, "prometheus", operator_targets)
    public, public_call = prometheus(folder, "prometheus-public", {"sfm-stream-public": [public_at]})
    with ExitStack() as running:
        call = [*command, "ingest", config, "--first-start", "--operator", ingest_at]
        running.enter_context(process(folder / "ingest.log", *call))
        until(lambda: live(ingest_at), (folder / "ingest.log").read_text)
        rollup = running.enter_context(
            process(folder / "rollup.log", *command, "rollup", config, "--operator", rollup_at)
        )
        running.enter_context(process(folder / "serve.log", *command, "serve", config, "--listen", serve_at))
        running.enter_context(process(folder / "operator.log", *operator_call))
        running.enter_context(process(folder / "public.log", *public_call))
        for server, log in ((operator, "operator.log"), (public, "public.log")):
            until(lambda: answers(server), (folder / log).read_text, 0.2)
        # A rate is seen where a counter moves between two scrapes.
        until(lambda: asked(operator, "sfm_events_read_total > 0"), (folder / "ingest.log").read_text, 1)
        now = int(time.time() * 1000)
        run.produce([Event(f"p{number % 8}", f"u{number}", now, now) for number in range(LATER)])
        produce(kafka, run.topic, [(b"p1", b"{", now, 0)])
        until(lambda: asked(operator, f"sfm_events_read_total == {READ}"), (folder / "ingest.log").read_text, 1)
        yield Watched(operator, public, rollup)


def live(address: str) -> bool:
    """Whether a worker is ready: it has made its topics."""
    try:
        with urllib.request.urlopen(f"http://{address}/ready", timeout=PATIENCE_S) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.mark.parametrize("name", ["operator", "public"])
def test_every_panel_shows_something(watched, name):
    server = getattr(watched, name)

    def values(expression: str, label: str) -> list[str]:
        until(lambda: asked(server, expression), lambda: expression, 1)
        return [series["metric"][label] for series in asked(server, f"group by ({label}) ({expression})")]

    chosen = choices(name, values)
    assert chosen["job"] == re.escape(f"sfm-stream-{name}"), "what the other domain has is not among it"
    for panel in panels(name):
        for expression in expressions(panel, chosen):
            if panel["title"] in MAY_BE_EMPTY:
                asked(server, expression)
            else:
                until(lambda: asked(server, expression), lambda: f"{panel['title']}: {expression}", 1)


def test_what_is_shown_is_what_was_sent(watched):
    [read] = asked(watched.operator, "sum(sfm_events_read_total)")
    assert float(read["value"][1]) == READ
    until(lambda: len(asked(watched.public, 'sfm_estimate{grain="hour"}')) == 8, every_s=1)
    names = {series["metric"]["__name__"] for series in asked(watched.public, '{__name__=~"sfm_.+"}')}
    assert names == {
        "sfm_estimate",
        "sfm_estimate_low",
        "sfm_estimate_high",
        "sfm_estimate_is_lower_bound",
        "sfm_estimate_end_timestamp_seconds",
        "sfm_estimate_keys_left_out",
    }


def test_no_alert_while_all_is_well_and_one_where_a_worker_is_gone(watched):
    alerts = {
        rule["alert"]: rule["expr"]
        for group in yaml.safe_load((DEPLOY / "alerts.yml").read_text("utf-8"))["groups"]
        for rule in group["rules"]
    }
    for name, expression in alerts.items():
        until(lambda: asked(watched.operator, expression) == [], lambda: (name, asked(watched.operator, expression)), 1)
    assert asked(watched.operator, 'ALERTS{alertstate="firing"}') == []
    watched.rollup.kill()
    pending = 'ALERTS{alertname=~"WorkerGone|NotReady"}'
    until(
        lambda: (
            {series["metric"]["alertname"] for series in asked(watched.operator, pending)} == {"WorkerGone", "NotReady"}
        ),
        lambda: asked(watched.operator, pending),
        1,
    )
