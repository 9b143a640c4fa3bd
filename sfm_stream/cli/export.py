"""`sfm-stream export`: published sketches as a table for other engines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click

from sfm_stream.answers.export import COLUMNS, ExportReport, exported_rows
from sfm_stream.answers.release_terms import release_terms
from sfm_stream.answers.table_file import CsvTable, ParquetTable, Table, TableRow, new_file
from sfm_stream.cli.output import echo_json
from sfm_stream.cli.question import FROM, KEY, TO, question_of
from sfm_stream.cli.streams import fault
from sfm_stream.composition.published import published
from sfm_stream.composition.stop_signal import Stop
from sfm_stream.config.config import load_config
from sfm_stream.errors import ConflictError
from sfm_stream.readable import visible
from sfm_stream.units import ROLLUPS, SKETCHES

STDOUT = Path("-")
TABLES: dict[str, type[CsvTable] | type[ParquetTable]] = {".parquet": ParquetTable, ".csv": CsvTable}


def _check_suffix(context: click.Context, parameter: click.Parameter, out: Path) -> Path:
    if out != STDOUT and out.suffix not in TABLES:
        raise click.BadParameter(
            f"{out} ends neither in .parquet nor in .csv; the ending says which of them is written"
        )
    return out


@click.command()
@click.argument("config", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--format",
    type=click.Choice(["presto"]),
    default="presto",
    show_default=True,
    expose_value=False,
    help="Whose bytes the column `sketch` holds.",
)
@click.option(
    "--out",
    required=True,
    callback=_check_suffix,
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="FILE.parquet, FILE.csv, or - for CSV on standard output.",
)
@click.option("--topic", type=click.Choice([SKETCHES, ROLLUPS]), default=SKETCHES, show_default=True)
@KEY
@FROM
@TO
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON document.")
def export(
    config: Path,
    out: Path,
    topic: str,
    keys: tuple[str, ...],
    since: str | None,
    until: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write the published sketches of CONFIG as a table that Presto reads: a row each, with its bytes of an SFMSKETCH.

    Costs no privacy, however often. The file gets its name once it is whole.
    """
    loaded = load_config(config)
    question = question_of(loaded, "window" if topic == SKETCHES else None, keys, since, until)
    terms, report = release_terms(loaded), ExportReport()
    with Stop().listening() as stopping, published(loaded) as reader, _progress() as progress:
        rows = exported_rows(reader, terms, question, report)
        _write(out, force, _until_stopped(rows, stopping, report, progress))
    if as_json:
        echo_json(_as_json(report, topic, out), err=out == STDOUT)
    else:
        _say(report, out)
    _warn(report)
    for line in report.unanswered:
        click.echo(visible(line), err=True)
    if conflicts := sorted(report.omitted.conflicts):
        raise ConflictError(
            f"{len(conflicts)} releases have a second, different payload: a privacy incident. Only the first of each "
            "was written. Ids: " + ", ".join(release_id.hex() for release_id in conflicts[:5])
        )


def _write(out: Path, force: bool, rows: Iterator[TableRow]) -> None:
    if out == STDOUT:
        _fill(CsvTable(sys.stdout.buffer, COLUMNS), rows)
        sys.stdout.buffer.flush()
        return
    try:
        with new_file(out, force) as sink:
            _fill(TABLES[out.suffix](sink, COLUMNS), rows)
    except OSError as error:
        raise fault(str(out), error) from None


def _fill(table: Table, rows: Iterator[TableRow]) -> None:
    with closing(table):
        for row in rows:
            table.add(row)


def _until_stopped(
    rows: Iterator[TableRow], stopping: Stop, report: ExportReport, progress: Callable[[int], None]
) -> Iterator[TableRow]:
    """The same rows. At a signal the command ends and leaves no file, because half of the rows are no table."""
    for row in rows:
        if stopping():
            click.echo("stopped by a signal; run it again to export", err=True)
            raise click.exceptions.Exit(128 + stopping.signal)
        progress(report.rows)
        yield row


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """A function that takes the number of rows so far and shows it on a terminal. How many will come is not known."""
    from rich.console import Console

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield lambda rows: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description} {task.completed:,.0f} rows"), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("exporting", total=None)
        yield lambda rows: bar.update(task, completed=rows)


def _as_json(report: ExportReport, topic: str, out: Path) -> dict[str, object]:
    return {
        "out": str(out),
        "topic": topic,
        "rows": report.rows,
        "duplicates": report.omitted.duplicates,
        "replaced": report.omitted.replaced,
        "without_sketch": report.without_sketch,
        "lower_bounds": report.lower_bounds,
        "hashes": sorted(report.hashes),
        "conflicts": len(report.omitted.conflicts),
    }


def _say(report: ExportReport, out: Path) -> None:
    to_stderr = out == STDOUT
    click.echo(f"wrote {report.rows:,} rows" + ("" if to_stderr else f" into {visible(str(out))}"), err=to_stderr)
    for count, what in (
        (report.omitted.duplicates, "identical copies left out"),
        (report.omitted.replaced, "older revisions left out"),
        (report.lower_bounds, "lower bounds: windows are missing from them, withheld or not counted"),
        (report.without_sketch, "rows without a sketch: they are pure noise, which Presto's format has no place for"),
    ):
        if count:
            click.echo(f"  {count:,} {what}", err=to_stderr)


def _warn(report: ExportReport) -> None:
    if foreign := report.foreign_hashes:
        click.echo(
            f"warning: sketches under the hash {', '.join(foreign)} count in Presto and merge with one another, but "
            "merged with sketches made by Presto (xxh64) they give a wrong count and no error",
            err=True,
        )
