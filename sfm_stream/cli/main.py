"""The command line: errors become one clear line and an exit code. The commands are in commands.py."""

from __future__ import annotations

import atexit
import gc
import sys
from contextlib import suppress

import click

from sfm_stream.cli.commands import LazyCommands
from sfm_stream.cli.streams import ReaderGone, guard
from sfm_stream.errors import ConfigError, SfmStreamError
from sfm_stream.readable import visible


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sfm-stream")
def cli() -> None:
    """Count distinct users for each key of a stream, privately.

    Exit codes: 0 done; 1 an error; 2 wrong usage; 3 the configuration must not run; 4 state, input and configuration
    do not fit together, or a limit is reached: nothing more was published; 5 no entropy; 6 a second payload for a
    known release: a privacy incident; 7 the cluster is away or refuses this client, or a disk is full or fails: nothing
    is lost by starting again; 8 nothing that was read was counted; 9 nothing that is published answers the question;
    130, 143 stopped by a signal, nothing lost.
    """


def main() -> None:
    """Entry point of the `sfm-stream` command."""
    guard()
    _end_quickly()
    try:
        code = cli(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as error:
        _say(error)
        code = error.exit_code
    except SfmStreamError as error:
        problems = error.problems if isinstance(error, ConfigError) else (str(error),)
        for problem in problems:
            click.echo(f"error: {visible(problem)}", err=True)
        code = error.exit_code
    except ReaderGone:
        code = 141
    with suppress(Exception):
        sys.stdout.flush()  # a failure here was reported before, and must not change the exit code
    sys.exit(code if isinstance(code, int) else 0)


def _end_quickly() -> None:
    """At its end this process looks for no cycles in what goes with it: that takes a tenth of a short command."""
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


def _say(error: click.ClickException) -> None:
    """Print an error as click does, but with every character visible: an argument may come from data too."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        click.echo(f"{context.get_usage()}\nTry '{context.command_path} -h' for help.\n", err=True)
    said = "\n".join(map(visible, error.format_message().splitlines()))
    click.echo(f"Error: {said}", err=True)
