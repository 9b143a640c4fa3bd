"""The command: points one after the other, each in a process of its own; then JSON, the picture and the tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks.curves.curves import CURVES, PARTITIONS
from benchmarks.curves.point import Point
from benchmarks.curves.tables import tables
from benchmarks.peers import installs, sfm
from benchmarks.peers.cli import machine
from benchmarks.peers.data_sets import DataSet
from benchmarks.peers.installs import CACHE, CannotInstallError
from benchmarks.peers.pages import write_between
from benchmarks.peers.results import code_state
from benchmarks.peers.site import ROOT, Site, opened

FOLDER, PAGE = ROOT / "docs/performance", ROOT / "docs/performance.md"
TOPIC_COST_S, PAGES, MINUTE_EVENTS = 180, 1000, 100_000
QUICK = {"events": 2_000, "repetitions": 1}
PARTITIONS_NAME = "partitions"

Found = dict[str, list[float]]
"""Kernel to median, least and most."""


@click.command()
@click.option("--curves", "chosen", help="Names of curves, with commas between them.")
@click.option("--again", is_flag=True, help="Measure what was measured for this commit already, too.")
@click.option("--quick", is_flag=True, help="Few keys and events: a smoke run, whose figures mean nothing.")
@click.option("--out", type=click.Path(path_type=Path), help="Write JSON, picture and tables here, and not into docs/.")
def main(chosen: str | None, again: bool, quick: bool, out: Path | None) -> None:
    """Measure how cost and memory grow with keys, windows, batches, codecs, buckets and partitions."""
    names = [*(curve.name for curve in CURVES), PARTITIONS_NAME]
    wanted = names if chosen is None else chosen.split(",")
    if unknown := set(wanted) - set(names):
        raise click.BadParameter(f"no such curve: {', '.join(sorted(unknown))} (there are {', '.join(names)})")
    costs = {curve.name: curve.cost_s for curve in CURVES} | {PARTITIONS_NAME: TOPIC_COST_S}
    click.echo(f"at most {sum(costs[name] for name in wanted) / 60:.0f} minutes on a quiet machine")
    load = ", ".join(f"{each:.2f}" for each in os.getloadavg())
    kept = Kept((out or CACHE / "results") / f"curves-{code_state()}{'-quick' * quick}.json")
    for curve in CURVES:
        for at, point in curve.points.items() if curve.name in wanted else ():
            if again or not kept.has(curve.name, at):
                kept.add(curve.name, at, _point(_smaller(point) if quick else point), f"{curve.unit}")
    if PARTITIONS_NAME in wanted:
        _partitions(kept, again, quick)
    about = {"date": datetime.now(UTC).date().isoformat(), "commit": code_state(), "machine": machine(), "load": load}
    _write({"about": about, "curves": kept.all}, out, quick)


class Kept:
    """Points that are measured, in a file that grows with each: curve to place on the x axis to what was found."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.all: dict[str, dict[str, Found]] = json.loads(path.read_text()) if path.exists() else {}

    def has(self, curve: str, at: str) -> bool:
        return at in self.all.get(curve, {})

    def add(self, curve: str, at: str, found: Found, unit: str) -> None:
        self.all.setdefault(curve, {})[at] = found
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.all))
        said = ", ".join(f"{kernel} {values[0]:,.0f} {unit}" for kernel, values in found.items())
        click.echo(f"{curve}, {at}: {said}")


def _smaller(point: Point) -> Point:
    few = {"keys": min(point.keys, 5_000 if point.measure == "memory" else 1000)}
    return Point(**asdict(point) | QUICK | few | {"buckets": min(point.buckets, 1024)})


def _point(point: Point) -> Found:
    """Memory is that of a process which held nothing before, so each kernel has one of its own."""
    names = sfm.kernels()
    found: Found = {}
    for group in [[name] for name in names] if point.measure == "memory" else [names]:
        given = json.dumps({"point": asdict(point), "kernels": group})
        call = [sys.executable, "-m", "benchmarks.curves.point", given]
        done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise click.ClickException(done.stderr[-2000:])
        found |= json.loads(done.stdout)
    return found


def _partitions(kept: Kept, again: bool, quick: bool) -> None:
    """ns an event more, of one process that reads all partitions of a topic and releases nothing."""
    todo = [n for n in PARTITIONS if again or not kept.has(PARTITIONS_NAME, str(n))]
    if not todo:
        return
    try:
        writer = (sys.executable, "kafka-python") if quick else (str(installs.environment("by-hand")), "confluent")
    except CannotInstallError:
        writer = (sys.executable, "kafka-python")
    with tempfile.TemporaryDirectory(prefix="sfm-curves-") as folder, opened(Path(folder), writer) as site:
        for count in todo:
            found = {kernel: _slope(site, count, kernel, quick) for kernel in sfm.kernels()}
            kept.add(PARTITIONS_NAME, str(count), found, "ns an event")


def _slope(site: Site, partitions: int, kernel: str, quick: bool) -> list[float]:
    slopes = []
    sizes = [
        DataSet(20 if quick else PAGES, windows, 1000 if quick else MINUTE_EVENTS, partitions=partitions)
        for windows in (1, 4)
    ]
    for number in range(1 if quick else 3):
        small, large = (
            sfm.without_releases(site, f"{site.prefix}-{kernel}-{data.windows}-{partitions}-{number}", data, kernel)[0]
            for data in sizes
        )
        slopes.append((large.cpu_s - small.cpu_s) / (sizes[1].total - sizes[0].total) * 1e9)
    return [median(slopes), min(slopes), max(slopes)]


def _write(said: Mapping[str, Any], out: Path | None, quick: bool) -> None:
    section = tables(said)
    click.echo("\n" + section)
    if out is None and quick:
        return
    folder = out or FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "curves.json").write_text(json.dumps(said, indent=1) + "\n")
    try:
        from benchmarks.curves.picture import draw
    except ModuleNotFoundError as missing:
        raise click.ClickException(f"no picture without {missing.name}: pip install 'sfm-stream[plot]'") from None
    draw(said, folder / "curves.svg")
    if out is not None:
        (folder / "curves.md").write_text(section)
    else:
        write_between(PAGE, "curves", section)
        click.echo(f"written: {FOLDER.relative_to(ROOT)}/curves.json, curves.svg, and {PAGE.relative_to(ROOT)}")
