"""The curves of docs/performance.md: what is read is what was made, and a smoke run writes tables and a picture."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from kafka.record import MemoryRecords
from support.patience import PATIENCE_S

from benchmarks import spans
from benchmarks.curves import point
from benchmarks.curves.cli import Kept
from benchmarks.curves.curves import CURVES
from benchmarks.curves.tables import tables
from benchmarks.curves.wire import CODECS, batches, varint
from benchmarks.peers import report
from benchmarks.peers.pages import between

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/performance.md").read_text("utf-8")
RECORDS = [(b"k%d" % number, b"v" * (number % 300)) for number in range(500)]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("a_batch", [1, 7, None])
def test_batches_are_those_of_kafka(codec, a_batch):
    """As the client reads them, with their checksums."""
    found, sizes, following = [], [], 0
    for first, behind, raw in batches(RECORDS, 1_700_000_000_000, a_batch, codec):
        assert first == following
        following = behind
        read = MemoryRecords(raw).next_batch()
        assert read.validate_crc()
        sizes.append(behind - first)
        found += [(record.offset, record.key, record.value, record.timestamp) for record in read]
    assert found == [(offset, key, value, 1_700_000_000_000) for offset, (key, value) in enumerate(RECORDS)]
    assert following == len(RECORDS)
    assert set(sizes[:-1]) == {a_batch} if a_batch else len(sizes) > 2


def test_numbers_are_written_as_kafka_writes_them():
    assert [varint(number) for number in (0, -1, 1, 63, 64, 300)] == [
        b"\0",
        b"\1",
        b"\2",
        b"\x7e",
        b"\x80\1",
        b"\xd8\4",
    ]


def test_what_is_measured_is_what_is_said():
    """All events of a point are counted, in as many windows and of as many keys as it says."""
    asked = point.Point("cost", keys=20, windows=6, events=1_000, a_batch=30)
    warm, measured = point._events(asked)
    into = point.partition(asked)
    point.read(into, warm)
    assert into.counter is not None
    assert len(into.counter.keys) == 20
    point.read(into, measured)
    assert into._setup.report.counted == 1_020
    assert into.counter.open_windows == 6
    assert into._setup.report.dropped == {}


def test_a_smoke_run(tmp_path):
    """Two curves without a broker: tables, JSON and a picture."""
    call = [sys.executable, "-m", "benchmarks.curves", "--quick", "--curves", "batches,buckets", "--out", str(tmp_path)]
    done = subprocess.run(call, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=4 * PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads((tmp_path / "curves.json").read_text())
    wanted = {curve.name: list(curve.points) for curve in CURVES if curve.name in ("batches", "buckets")}
    assert {name: list(points) for name, points in said["curves"].items()} == wanted
    assert (tmp_path / "curves.md").read_text() == tables(said)
    assert "<svg" in (tmp_path / "curves.svg").read_text()


def test_points_are_kept(tmp_path):
    Kept(tmp_path / "points.json").add("keys", "10", {"python": [2.0, 1.0, 3.0]}, "ns")
    again = Kept(tmp_path / "points.json")
    assert again.all == {"keys": {"10": {"python": [2.0, 1.0, 3.0]}}}
    assert (again.has("keys", "10"), again.has("keys", "100"), again.has("windows", "10")) == (True, False, False)


@pytest.mark.parametrize(("name", "section"), [("peers", report.page_section), ("curves", tables)])
def test_the_page_says_what_was_measured(name, section):
    measured = ROOT / f"docs/performance/{name}.json"
    if measured.exists():
        assert between(PAGE, name) == section(json.loads(measured.read_text("utf-8")))
    else:
        assert "Nothing has been measured" in between(PAGE, name)


def test_memory_with_coarser_spans_is_measured(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["spans.py", "20000", "1"])
    spans.main()
    assert re.search(r"5m hour day +\d+ bytes .*\nratio \d\.\d\d\n", capsys.readouterr().out)
