"""The command: which figures, how many trials, where the results go."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.paper import document, runner
from benchmarks.paper.claims import Claim, check, report
from benchmarks.paper.figures import FIGURES, make_plan
from benchmarks.paper.items import Addresses, addresses_of_csv, synthetic_addresses
from benchmarks.paper.plots import PLOTS
from benchmarks.paper.summary import Row, read_csv, summarise, write_csv
from benchmarks.paper.tables import TABLES, readings_table

FULL_TRIALS, QUICK_TRIALS = 1000, 30


@click.command()
@click.argument("what", type=click.Choice([*FIGURES, "all"]), nargs=-1, required=True)
@click.option("--trials", type=click.IntRange(2), help=f"Default: {FULL_TRIALS}, quick {QUICK_TRIALS}.")
@click.option("--quick", is_flag=True, help="Fewer points and trials: a minute or two.")
@click.option(
    "--csv", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="BitcoinHeistData.csv."
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default="paper-results", show_default=True)
@click.option("--processes", type=click.IntRange(1), default=os.cpu_count(), show_default="one a core")
@click.option("--document", "publish", is_flag=True, help="Put the results into docs/paper.md (all figures).")
def main(
    what: tuple[str, ...], trials: int | None, quick: bool, file: Path | None, out: Path, processes: int, publish: bool
) -> None:
    """Measure the paper's figures: for each a CSV, a PNG and a Markdown table, and whether its claims held.

    Trials are kept in OUT: a run that was cut off goes on where it was, and more --trials add to those there are.
    """
    names = list(FIGURES) if "all" in what else sorted(set(what))
    if publish and (quick or len(names) < len(FIGURES)):
        raise click.UsageError("--document is for a full run of all figures")
    trials = trials or (QUICK_TRIALS if quick else FULL_TRIALS)
    out.mkdir(parents=True, exist_ok=True)
    addresses = _addresses(file, out) if any(FIGURES[name].uses_addresses for name in names) else None
    with runner.workers(processes) as pool:
        for name in names:
            began = time.monotonic()
            plan = make_plan(name, quick, addresses)
            with _progress(name, trials) as told:
                estimates = runner.measure(plan, trials, out, pool, addresses, told)
            _write(name, summarise(plan, estimates), out)
            click.echo(f"{name}: {trials} trials, data: {plan.data}, {time.monotonic() - began:.0f} s")
    rows = {name: read_csv(out / f"{name}.csv") for name in names}
    claims = check(rows)
    (out / "claims.md").write_text(report(claims))
    for claim in claims:
        click.echo(_line(claim))
    if publish:
        document.publish(out)


def _addresses(file: Path | None, out: Path) -> Addresses:
    return addresses_of_csv(file, out) if file else synthetic_addresses(out)


def _write(name: str, rows: list[Row], out: Path) -> None:
    write_csv(rows, out / f"{name}.csv")
    rows = read_csv(out / f"{name}.csv")
    (out / f"{name}.md").write_text(TABLES[name](rows))
    if name == "figure4":
        (out / "readings.md").write_text(readings_table(rows))
    PLOTS[name](rows, out / f"{name}.png")


def _line(claim: Claim) -> str:
    return f"[{'held' if claim.held else 'DID NOT HOLD'}] {claim.figure}: {claim.text}. {claim.numbers}"


@contextmanager
def _progress(name: str, trials: int) -> Iterator[runner.Told]:
    """A bar on a terminal; nothing in a pipe."""
    console = Console(stderr=True)
    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(name, total=trials)
        yield lambda more: progress.advance(task, more)
