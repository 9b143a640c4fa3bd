"""The README works as written: its notebook code, its configuration, its commands."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from support.kafka_nodes import free_ports
from support.kafka_topics import make_topic, produce, topic_name
from support.patience import PATIENCE_S, patiently, until

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md"))]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_the_notebook_code_runs_and_is_ten_lines(capsys):
    (code,) = blocks("python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    namespace: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), namespace)  # noqa: S102 -- the page's own code
    both = namespace["both"]
    # The coins are real: 6 standard errors, 2e-9 two-sided.
    assert abs(both.value - 80_000) < 6 * both.standard_error < 0.2 * 80_000
    assert "95 % interval" in capsys.readouterr().out


def commands_with(word: str) -> str:
    """The block of commands in which one of them is told by a word."""
    (found,) = (block for block in blocks("sh") if word in block)
    return found


def served_page(command: list[str], folder: Path) -> str:
    """What a command of sfm-stream serve shows at its root, at a port that is free."""
    (port,) = free_ports(1)
    process, pages = subprocess.Popen([*command, "--listen", f"127.0.0.1:{port}"], cwd=folder), list[str]()

    def asked() -> bool:
        assert process.poll() is None, "it has ended"
        with contextlib.suppress(httpx.ConnectError):
            got = httpx.get(f"http://127.0.0.1:{port}/", follow_redirects=True, timeout=PATIENCE_S)
            pages.append(got.text)
        return bool(pages)

    try:
        until(asked)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
    return pages[0]


def test_the_three_commands_show_the_page(tmp_path):
    (config,) = blocks("toml")
    (tmp_path / "app.toml").write_text(config)
    *commands, serve = [
        [sys.executable, "-m", "sfm_stream.cli", *shlex.split(line, comments=True)[1:]]
        for line in commands_with("serve app.toml").strip().splitlines()
    ]
    assert len(commands) == 2
    for call in commands:
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, (call, done.stderr)
    page = served_page(serve, tmp_path)
    assert "page-visitors" in page
    assert "Largest keys" in page


def test_the_commands_run_on_the_configuration(tmp_path):
    (config,) = blocks("toml")
    (tmp_path / "app.toml").write_text(config)
    commands = commands_with("check app.toml")
    for line in commands.strip().splitlines():
        program, *arguments = shlex.split(line)
        assert program == "sfm-stream"
        call = [sys.executable, "-m", "sfm_stream.cli", *arguments]
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, (line, done.stderr)
    assert "95 % interval" in done.stdout
    assert re.search(r"1 x day of 1 +raw", done.stdout)


@pytest.mark.kafka
def test_the_commands_run_on_kafka(kafka, tmp_path):
    """The configuration with [kafka] in place of [input] and [output], the workers started and killed as it says."""
    (config,) = blocks("toml")
    commands = commands_with("ingest app.toml")
    topic = make_topic(kafka, topic_name("readme"), 3)
    start_ms = int(time.time()) // 3600 * 3_600_000 - 2 * 3_600_000
    cluster = f"""[kafka]
bootstrap = ["{kafka}"]
topic = "{topic}"
timestamps = "create_time"
accept_any_clock = true
replication = 1
session_timeout = "6s"
"""
    config = re.sub(r"\[input\].*?(?=\[event\])", cluster, config, flags=re.S)
    config = re.sub(r"\[output\].*", "[metrics]\noperator = ''\n", config, flags=re.S)
    config = config.replace("page-visitors", topic).replace(
        'size = "hour"',
        f'size = "hour"\ngrace = "1m"\nstart = {datetime.fromtimestamp(start_ms / 1000, UTC).isoformat()}',
    )
    (tmp_path / "app.toml").write_text(config)
    records = []
    for number in range(3000):
        at = start_ms + number * 2500
        page = f"p{number % 3}"
        records.append((page.encode(), json.dumps({"page": page, "user": number, "at": at}).encode(), at, None))
    produce(kafka, topic, records)
    *workers, ask = [shlex.split(line, comments=True) for line in commands.strip().splitlines()]
    assert [call[:2] for call in workers] == [["sfm-stream", "ingest"], ["sfm-stream", "rollup"]]
    running = []
    try:
        for _, *arguments in [workers[0], workers[0], workers[0], workers[1]]:
            path = tmp_path / f"{len(running)}.log"
            call = [sys.executable, "-m", "sfm_stream.cli", *arguments]
            with path.open("wb") as log:
                running.append(subprocess.Popen(call, cwd=tmp_path, stdout=log, stderr=log))
            # It has begun, or joined what has begun.
            until(lambda: "begins at" in path.read_text() or "begun" in path.read_text() or arguments[0] != "ingest")
        running[0].kill()
        for _ in patiently(lambda: [path.read_text()[-2000:] for path in sorted(tmp_path.glob("*.log"))]):
            call = [sys.executable, "-m", "sfm_stream.cli", *ask[1:]]
            done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
            assert done.returncode in (0, 9), done.stderr
            if done.stdout.count("ok") >= 3:
                break
    finally:
        for worker in running:
            worker.kill()
            worker.wait(PATIENCE_S)
    assert "95 % interval" in done.stdout


def test_the_demo_runs_and_its_intervals_hold(tmp_path):
    """False alarms: of 589 intervals of days at 95 %, fewer than 90 % hold in fewer than 1e-6 of runs; of the 93 of
    airports fewer than 80 hold in 2e-4, if they were independent. The median error of the airports' days has a standard
    error of 1.6 %, and half of them are above 3 % in fewer than 1e-9 of runs.
    """
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "flights" / "demo.py", "--folder", tmp_path / "published"],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert "What was protected" in done.stdout
    assert "true count" in done.stdout
    figures = r"days from raw +(\S+) +(\S+) ?% +([\d,]+) of ([\d,]+)"
    held = {}
    for epsilon, error, inside, total in re.findall(figures, done.stdout):
        assert epsilon == "1"
        assert float(error) < 3
        held[int(total)] = int(inside.replace(",", ""))
    assert held.keys() == {93, 496}
    assert held[93] >= 80
    assert sum(held.values()) >= 0.9 * 589
    assert re.search(r"unions of hours +96 ", done.stdout)
    _, *command = shlex.split(done.stdout.strip().splitlines()[-1])
    page = served_page([sys.executable, "-m", "sfm_stream.cli", *command], ROOT)
    assert [name in page for name in ("flights-by-origin", "flights-by-carrier")] == [True, True]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text()):
        assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"


@pytest.mark.parametrize("page", PAGES)
def test_named_files_exist(page):
    for name in re.findall(r"`((?:docs|tests|benchmarks|examples|sfm_stream)/[\w./-]+)`", (ROOT / page).read_text()):
        assert (ROOT / name).exists(), f"{page} names {name}"
