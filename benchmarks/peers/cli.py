"""The command: what is asked for, how long it will take, the runs one after the other, the report."""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from benchmarks.peers import installs, report
from benchmarks.peers.data_sets import FULL, QUICK
from benchmarks.peers.installs import CACHE, CannotInstallError
from benchmarks.peers.pages import write_between
from benchmarks.peers.process import RunFailedError
from benchmarks.peers.results import Result, Results, code_state
from benchmarks.peers.rows import Row, rows
from benchmarks.peers.sfm import printed
from benchmarks.peers.site import ROOT, Site, opened

DOCUMENT = ROOT / "docs/performance/peers.json"
PAGE = ROOT / "docs/performance.md"
WRITING_S, CHECKING_S = 90, 2
"""About how long the topics take, and the check of one run."""


@click.command()
@click.option("--repetitions", type=click.IntRange(1), default=3, show_default=True)
@click.option("--rows", "chosen", help="Names of rows, with commas between them; all others keep what was measured.")
@click.option("--again", is_flag=True, help="Run what was run for this commit already, too.")
@click.option(
    "--quick",
    is_flag=True,
    help="A smoke run on some thousand events; it writes no page, and its figures mean nothing.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write JSON and tables here, and not into docs/.")
@click.option("--list", "listing", is_flag=True, help="Name the rows and end.")
def main(repetitions: int, chosen: str | None, again: bool, quick: bool, out: Path | None, listing: bool) -> None:
    """Measure sfm-stream beside what a user would take instead, on a broker of its own.

    Every repetition runs every row once on each size of its data, interleaved. What was measured for the same commit
    is not run again, so a run that was broken off goes on where it ended. docs/performance.md says what the figures
    mean.
    """
    scale = QUICK if quick else FULL
    listed = rows(scale)
    if listing:
        click.echo("\n".join(f"{row.name:<28}{row.title}" for row in listed))
        return
    wanted = _chosen(listed, chosen)
    name = f"{code_state()}-{'quick' if quick else 'full'}.jsonl"
    results = Results((out or CACHE / "results") / name)
    runs = todo(wanted, results, 1 if quick else repetitions, again)
    cost = sum(row.cost_s[size == "large"] + CHECKING_S for row, size, _ in runs)
    minutes = (cost / 40 if quick else cost + WRITING_S) / 60
    click.echo(f"{len(runs)} runs to do: about {minutes:.0f} minutes on a quiet machine")
    load = ", ".join(f"{each:.2f}" for each in os.getloadavg())
    if os.getloadavg()[0] > 0.5 and not quick:
        click.echo(f"the machine is not quiet (load {load}): read ratios, not figures", err=True)
    missing = _run(wanted, runs, results, quick)
    said = report.document(listed, results.all, _about(load, wanted, missing), missing)
    _write(said, out, quick)
    if wrong := [r for r in results.all if not r.right]:
        raise click.ClickException("wrong answers: " + ", ".join(sorted({f"{r.row} ({r.said})" for r in wrong})))


def _chosen(listed: list[Row], chosen: str | None) -> list[Row]:
    names = [row.name for row in listed] if chosen is None else chosen.split(",")
    if unknown := set(names) - {row.name for row in listed}:
        raise click.BadParameter(f"no such row: {', '.join(sorted(unknown))} (--list names them)")
    return [row for row in listed if row.name in names]


def todo(wanted: list[Row], results: Results, repetitions: int, again: bool) -> list[tuple[Row, str, int]]:
    """(row, size, number of the repetition) of what is not there yet, repetition by repetition."""
    sizes = {row.name: ("large",) if row.small is None else ("small", "large") for row in wanted}
    runs = [(row, size, number) for number in range(repetitions) for row in wanted for size in sizes[row.name]]
    return [run for run in runs if again or not results.has(run[0].name, run[1], run[2])]


def _run(wanted: list[Row], runs: list[tuple[Row, str, int]], results: Results, quick: bool) -> dict[str, str]:
    """Does the runs; gives the title of each row that cannot be run here, and why."""
    missing: dict[str, str] = {}
    if not runs:
        return missing
    with (
        tempfile.TemporaryDirectory(prefix="sfm-peers-") as folder,
        opened(Path(folder), _writer(wanted, quick)) as site,
    ):
        for done, (row, size, number) in enumerate(runs, 1):
            if row.title in missing:
                continue
            click.echo(f"[{done}/{len(runs)}] {row.name}, {size}, repetition {number + 1}")
            try:
                result = _one(site, row, size, number)
            except (CannotInstallError, RunFailedError) as problem:
                click.echo(f"  {problem}", err=True)
                missing[row.title] = str(problem).splitlines()[0][:120]
                continue
            results.add(result)
            rate = result.rate or result.count / result.cpu_s
            cost = f"{result.cpu_s:.2f} CPU s, {rate:,.0f} {row.of} per CPU second, {result.rss_mb:.0f} MB"
            click.echo(f"  {cost}: {result.said}")
    return missing


def _one(site: Site, row: Row, size: str, number: int) -> Result:
    data = row.large if size == "large" else row.small
    assert data is not None
    run = f"{site.prefix}-{row.name}-{size}-{number + 1}-{time.monotonic_ns() % 10**6}"
    used, checked = row.measure(site, run, data)
    return Result(
        row=row.name,
        size=size,
        repetition=number,
        count=row.count(data),
        cpu_s=used.cpu_s,
        system_s=used.system_s,
        rss_mb=used.rss_mb,
        wall_s=used.wall_s,
        rate=float(printed(used)["rate"]) if row.prints_rate else 0.0,
        right=checked.right,
        said=checked.said,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _writer(wanted: list[Row], quick: bool) -> tuple[str, str]:
    """confluent writes a million events in seconds; a smoke run makes do with the client that is here."""
    if quick and not {"bare", "by-hand-confluent"} & {row.name for row in wanted}:
        return sys.executable, "kafka-python"
    return str(installs.environment("by-hand")), "confluent"


def _about(load: str, wanted: list[Row], missing: dict[str, str]) -> dict[str, Any]:
    found = installs.versions(sys.executable, ["sfm-stream", "kafka-python", "crc32c", "msgspec", "xxhash", "numpy"])
    names = {row.name for row in wanted if row.title not in missing}
    if names & {"bare", "by-hand-confluent"}:
        found |= installs.versions(installs.environment("by-hand"), ["confluent-kafka"])
    if names & {"bytewax", "quixstreams"}:
        apart = installs.versions(installs.environment("frameworks"), ["bytewax", "quixstreams", "confluent-kafka"])
        found |= {f"{name} (of the frameworks)" if name in found else name: version for name, version in apart.items()}
    if names & {"streams", "streams-thousand"}:
        found |= installs.java_versions(installs.java_classes())
    found["Python"] = platform.python_version()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": code_state(),
        "machine": machine(),
        "load": load,
        "versions": found,
    }


def machine() -> str:
    """Cores, memory and system, in a few words."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{len(os.sched_getaffinity(0))} cores ({platform.machine()}), {memory:.0f} GiB, {platform.system()}"


def _write(said: dict[str, Any], out: Path | None, quick: bool) -> None:
    section = report.page_section(said)
    click.echo("\n" + section)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "peers.json").write_text(json.dumps(said, indent=1) + "\n")
        (out / "peers.md").write_text(section)
    elif not quick:
        DOCUMENT.parent.mkdir(exist_ok=True)
        DOCUMENT.write_text(json.dumps(said, indent=1) + "\n")
        write_between(PAGE, "peers", section)
        click.echo(f"written: {DOCUMENT.relative_to(ROOT)} and {PAGE.relative_to(ROOT)}")
