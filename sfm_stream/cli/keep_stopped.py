"""`sfm-stream keep-stopped`: a worker under a supervisor that starts everything again that ends."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("keep-stopped", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
@click.option(
    "--operator",
    metavar="ADDRESS",
    default="127.0.0.1:9464",
    show_default=True,
    help="Where to say that the worker is stopped: that of the worker; '': nowhere.",
)
@click.option(
    "--note",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file that keeps the worker stopped when this command itself is started again; delete it to start anew.",
)
@click.option("--logs", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def keep_stopped(context: click.Context, operator: str, note: Path | None, form: str, command: tuple[str, ...]) -> None:
    """Run COMMAND, a worker with its arguments, and do not end where it must not be started again.

    For supervisors that start everything again that ends, whatever its exit code is. After 1, 7 and signals this
    command ends as the worker did. After 2 to 6 and 8 it stays until it is stopped: alive and not ready, with the exit
    code as a metric.
    """
    from sfm_stream.composition.kept_stopped import run_kept_stopped
    from sfm_stream.observe.logs import configure

    configure(form)
    context.exit(run_kept_stopped(command, operator, note))
