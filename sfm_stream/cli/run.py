"""`sfm-stream run`: read the input to its end, release every window that is due, roll up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from sfm_stream.cli.noise_warnings import noise_of, warn_of_noise
from sfm_stream.cli.output import echo_json
from sfm_stream.cli.run_report import report_json, require_something_counted, say
from sfm_stream.clock import monotonic_s
from sfm_stream.composition.files import file_workers
from sfm_stream.composition.run_to_end import run_to_end
from sfm_stream.composition.stop_signal import Stop
from sfm_stream.config.config import load_config
from sfm_stream.errors import ConflictError, UnusableRecords
from sfm_stream.transport.files.format_guess import format_hint
from sfm_stream.transport.files.lines import LineInput

SAY_EVERY_S = 60.0
"""How often a run prints how far it is, where there is no terminal for a bar."""


@click.command()
@click.argument("config", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON document.")
def run(config: Path, as_json: bool) -> None:
    """Count CONFIG's input and publish into its output file. Run it again at any time: it goes on where it stopped."""
    loaded = load_config(config)
    warn_of_noise(noise_of(loaded))
    try:
        with file_workers(loaded) as work, Stop().listening() as stopping, _progress(work.lines) as progress:
            report = run_to_end(work, loaded.rollup.deadline, stopping, progress)
    except UnusableRecords as error:
        raise UnusableRecords(f"{error}. {format_hint(loaded.input_path)}".removesuffix(". ")) from error
    if as_json:
        echo_json(report_json(report))
    else:
        say(report, loaded)
    if report.conflicts:
        raise ConflictError(
            f"{len(report.conflicts)} releases have a second, different payload: a privacy incident. Ids: "
            + ", ".join(report.conflicts[:5])
        )
    if report.stopped:
        raise click.exceptions.Exit(128 + report.stopped)
    require_something_counted(report.ingest, loaded)


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
