"""What a run says at its end: what it did, as text or JSON, and a warning or an error where records were dropped."""

from __future__ import annotations

import click

from sfm_stream.composition.run_to_end import RunReport
from sfm_stream.config.config import Config
from sfm_stream.errors import NothingCounted
from sfm_stream.readable import instant, visible
from sfm_stream.transport.files.format_guess import format_hint
from sfm_stream.types import Reason
from sfm_stream.workers.ingest_report import IngestReport

WARN_SHARE = 0.05
"""A run warns where more than this share of the records it read was dropped."""
TOP_REASONS = 3


def report_json(report: RunReport) -> dict[str, object]:
    """What a run did, as one JSON document."""
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


def require_something_counted(ingest: IngestReport, config: Config) -> None:
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
