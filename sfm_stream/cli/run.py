"""`sfm-stream run`: read the input to its end, release every window that is due, roll up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from sfm_stream.cli.noise_warnings import warn_of_noise
from sfm_stream.cli.output import echo_json
from sfm_stream.clock import monotonic_s
from sfm_stream.composition.files import file_workers
from sfm_stream.composition.run_to_end import RunReport, run_to_end
from sfm_stream.composition.stop_signal import Stop
from sfm_stream.config.config import Config, load_config
from sfm_stream.errors import ConflictError, NothingCounted, UnusableRecords
from sfm_stream.readable import instant, visible
from sfm_stream.transport.files.format_guess import format_hint
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.types import Reason
from sfm_stream.workers.ingest_report import IngestReport

WARN_SHARE = 0.05
"""A run warns where more than this share of the records it read was dropped."""
TOP_REASONS = 3
SAY_EVERY_S = 60.0
"""How often a run prints how far it is, where there is no terminal for a bar."""


@click.command()
@click.argument("config", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON document.")
def run(config: Path, as_json: bool) -> None:
    """Count CONFIG's input and publish into its output file. Run it again at any time: it goes on where it stopped."""
    loaded = load_config(config)
    warn_of_noise(loaded)
    try:
        with file_workers(loaded) as work, Stop().listening() as stopping, _progress(work.lines) as progress:
            report = run_to_end(work, loaded.rollup.deadline, stopping, progress)
    except UnusableRecords as error:
        raise UnusableRecords(f"{error}. {format_hint(loaded.input_path)}".removesuffix(". ")) from error
    if as_json:
        echo_json(_as_json(report))
    else:
        say(report, loaded)
    if report.conflicts:
        raise ConflictError(
            f"{len(report.conflicts)} releases have a second, different payload: a privacy incident. Ids: "
            + ", ".join(report.conflicts[:5])
        )
    if report.stopped:
        raise click.exceptions.Exit(128 + report.stopped)
    _require_something_counted(report.ingest, loaded)


def _require_something_counted(ingest: IngestReport, config: Config) -> None:
    """Warn on standard error where many records were dropped. Raises NothingCounted where all of them were.

    Records that belong to a later epoch count neither as read nor as dropped.
    """
    dropped = ingest.dropped.copy()
    read = ingest.read - dropped.pop(Reason.AFTER_EPOCH, 0)
    lost = sum(dropped.values())
    top = ", ".join(f"{reason.name.lower()} {count:,}" for reason, count in dropped.most_common(TOP_REASONS))
    hint = format_hint(config.input_path) if lost == read else ""
    if read and lost == read:
        remedy = hint or "Check the [event] section against the data (sfm-stream check)"
        raise NothingCounted(f"none of {read:,} records was counted: {top}. {remedy}")
    if hint:
        raise NothingCounted(f"there is not one whole line to be counted. {hint}")
    if lost > WARN_SHARE * read:
        click.echo(
            f"warning: {lost:,} of {read:,} records ({lost / read:.0%}) were dropped, mostly: {top} "
            '(docs/operating.md, "Dropped records")',
            err=True,
        )


@contextmanager
def _progress(lines: LineInput) -> Iterator[Callable[[], None]]:
    """A function to call as reading goes on: on a terminal it moves a bar, elsewhere it prints a line now and then."""
    from rich.console import Console

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield _lines_now_and_then(lines)
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("counting", total=lines.size())
        yield lambda: bar.update(task, completed=lines.position())


def _lines_now_and_then(lines: LineInput) -> Callable[[], None]:
    said_s = monotonic_s()

    def look() -> None:
        nonlocal said_s
        if (now_s := monotonic_s()) < said_s + SAY_EVERY_S:
            return
        said_s = now_s
        done, size = lines.position(), lines.size()
        of = f" of {size:,} bytes ({done / size:.0%})" if size else " bytes"
        click.echo(f"counting: {done:,}{of}", err=True)

    return look


def _as_json(report: RunReport) -> dict[str, object]:
    ingest = report.ingest
    return {
        "read": ingest.read,
        "counted": ingest.counted,
        "dropped": {reason.name.lower(): count for reason, count in sorted(ingest.dropped.items()) if count},
        "released_before": ingest.released,
        "releases": ingest.releases,
        "rollups": report.rollups,
        "open_windows": ingest.open_windows,
        "closed_through": None if ingest.closed_through_ms is None else instant(ingest.closed_through_ms),
        "duplicates": report.seen["duplicate"] + report.seen["already_final"],
        "conflicts": len(report.conflicts),
        "finished_before": ingest.finished,
        "stopped_by_signal": report.stopped or None,
    }


def say(report: RunReport, config: Config) -> None:
    """Print what a run did."""
    ingest = report.ingest
    if ingest.finished:
        click.echo("this input was counted whole before, and it is the same still: there is nothing left to do")
    click.echo(f"read {ingest.read:,} records, counted {ingest.counted:,}, dropped {sum(ingest.dropped.values()):,}")
    if ingest.released:
        click.echo(f"  in windows that an earlier run released: {ingest.released:,}")
    for reason, count in sorted(ingest.dropped.items()):
        if count:
            click.echo(f"  {reason.name.lower()}: {count:,}")
    output = visible(str(config.output_path))
    click.echo(f"published {ingest.releases:,} releases and {report.rollups:,} roll-ups into {output}")
    if ingest.closed_through_ms is not None:
        click.echo(f"windows are closed up to {instant(ingest.closed_through_ms)}")
    if ingest.open_windows and config.whole:
        click.echo(
            f"{ingest.open_windows} windows are not released yet: an input counted whole is read from its beginning"
        )
    elif ingest.open_windows:
        click.echo(
            f"{ingest.open_windows} windows are still open: they close as later records arrive, or at the end of an "
            "input that is declared complete (input.complete = true)"
        )
    if report.stopped:
        click.echo("stopped by a signal; run it again to go on")
