"""check, run and ingest say in one line each which levels of a configuration are noise, and go on."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from support.embedded_runs import START_MS, here, write_config, write_events

NOISY = {"size": "15m", "epsilon": 1, "buckets": 4096, "levels": 24}
LINE = re.compile(r"days merged from 96 windows of 15m of epsilon 1 are noise: .*sfm-stream plan.*")


def made(folder: Path, **settings: object) -> Path:
    write_events(folder / "in.jsonl", ({"page": "p", "user": n, "at": START_MS + n * 1000} for n in range(50)))
    return write_config(folder, **settings)


def test_check_and_run_warn_in_one_line_and_go_on(tmp_path):
    config = made(tmp_path, **NOISY)
    for command in ("check", "run"):
        done = here(command, config)
        assert done.returncode == 0
        (line,) = done.stderr.splitlines()
        assert LINE.fullmatch(line.removeprefix("warning: "))
        assert "are noise" not in done.stdout
    (line,) = json.loads(here("check", config, "--json").stdout)["noise"]
    assert LINE.fullmatch(line)


def test_nothing_is_said_where_nothing_is_noise(tmp_path):
    config = made(tmp_path, **NOISY | {"size": "1h", "epsilon": 4})
    assert here("check", config).stderr == ""
    assert json.loads(here("check", config, "--json").stdout)["noise"] == []
    assert here("run", config).stderr == ""


def test_ingest_logs_it_before_it_opens_anything(tmp_path):
    text = made(tmp_path, **NOISY).read_text("utf-8")
    cluster = '[kafka]\nbootstrap = ["127.0.0.1:9"]\ntopic = "views"\ntimestamps = "create_time"\n'
    text = re.sub(r"\[(input|output)\]\n(?:(?!\[).*\n)*", "", text) + cluster
    config = tmp_path / "kafka.toml"
    config.write_text(text + '[metrics]\noperator = ""\n', "utf-8")
    with subprocess.Popen(
        [sys.executable, "-m", "sfm_stream.cli", "ingest", str(config)], stderr=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stderr is not None
        first = worker.stderr.readline()
        worker.kill()
    assert re.search(r"warning", first, re.IGNORECASE)
    assert LINE.search(first)
