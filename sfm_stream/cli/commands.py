"""The commands by name. A command's module is imported when that command is asked for; the list of all needs none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import click
from click.shell_completion import CompletionItem

COMMANDS = {
    "budget": "What the pipeline of CONFIG has spent so far, and the most that a person has lost of it.",
    "check": "Validate CONFIG, read some of its input without counting it, and show what would be counted.",
    "config": "Look at a configuration.",
    "estimate": "Distinct counts with 95 % intervals from the output of CONFIG.",
    "export": "Write the published sketches of CONFIG as a table that Presto reads: a row each, with its bytes of an "
    "SFMSKETCH.",
    "first-start": "Create the topics and positions of CONFIG's epoch where it never ran, and count nothing.",
    "generate": "Write page views as JSON lines: Zipf pages, a daily rhythm, returning visitors, some late and bad "
    "records.",
    "ingest": "Count the topic of CONFIG and release each window once.",
    "init": "Write a commented configuration into FILE (app.toml), which `check` accepts.",
    "inspect": "Decode the records of SOURCE.",
    "keep-stopped": "Run COMMAND, a worker with its arguments, and do not end where it must not be started again.",
    "plan": "Plan what to release, for what will be asked and what a person's day may cost.",
    "publish": "Copy committed releases of CONFIG's pipeline from its outbox to its public sketch topic.",
    "repartition": "Copy a topic that is not keyed by the counting key into the topic of CONFIG, which then is.",
    "rollup": "Merge the released windows of CONFIG's pipeline into hours and days, and publish those.",
    "run": "Count CONFIG's input and publish into its output file.",
    "serve": "Answer questions about what the pipelines of CONFIGS have published: a page, and a JSON API.",
    "test": "Read the events of CASES as CONFIG would, and compare what becomes of each with what is expected.",
}
"""Each command with the first sentence of its help, which the list of commands shows."""


class LazyCommands(click.Group):
    """A group of COMMANDS. Until a command is asked for, its name and its first sentence stand for it."""

    def __init__(self, **settings: object) -> None:
        listed = {name: click.Command(name, help=sentence) for name, sentence in COMMANDS.items()}
        super().__init__(commands=listed, **settings)  # type: ignore[arg-type]  # click's own settings, passed on

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return imported(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `--help`, made of what stands for the commands."""
        click.Group(commands=self.commands).format_commands(ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """As click's, of what stands for the commands: a TAB imports none of them."""
        found = [
            CompletionItem(name, help=sentence) for name, sentence in COMMANDS.items() if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


@contextmanager
def _without_collections() -> Iterator[None]:
    """Nobody looks for cycles of garbage in this block, nor later in what it made: modules stay, and are many."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


@cache
def imported(name: str) -> click.Command:
    """The command of this name, from its module. Raises LookupError for a name that is not in COMMANDS."""
    with _without_collections():
        found = _of_configurations(name) or _of_answers(name) or _of_pipelines(name)
    if found is None:
        raise LookupError(f"{name} is no command")
    return found


def _of_configurations(name: str) -> click.Command | None:
    """The command on configurations alone: what they hold, what they will be worth, what they make of records."""
    match name:
        case "check":
            from sfm_stream.cli.check import check

            return check
        case "config":
            from sfm_stream.cli.config import config

            return config
        case "generate":
            from sfm_stream.cli.generate import generate

            return generate
        case "init":
            from sfm_stream.cli.init import init

            return init
        case "plan":
            from sfm_stream.cli.plan import plan

            return plan
        case "test":
            from sfm_stream.cli.test import test

            return test
    return None


def _of_answers(name: str) -> click.Command | None:
    """The command on what is published."""
    match name:
        case "budget":
            from sfm_stream.cli.budget import budget

            return budget
        case "estimate":
            from sfm_stream.cli.estimate import estimate

            return estimate
        case "export":
            from sfm_stream.cli.export import export

            return export
        case "inspect":
            from sfm_stream.cli.inspect import inspect

            return inspect
        case "serve":
            from sfm_stream.cli.serve import serve

            return serve
    return None


def _of_pipelines(name: str) -> click.Command | None:
    """The command that counts, merges or copies, or begins or holds such a worker."""
    match name:
        case "run":
            from sfm_stream.cli.run import run

            return run
        case "ingest":
            from sfm_stream.cli.workers import ingest

            return ingest
        case "first-start":
            from sfm_stream.cli.first_start import first_start

            return first_start
        case "keep-stopped":
            from sfm_stream.cli.keep_stopped import keep_stopped

            return keep_stopped
        case "publish":
            from sfm_stream.cli.workers import publish

            return publish
        case "repartition":
            from sfm_stream.cli.workers import repartition

            return repartition
        case "rollup":
            from sfm_stream.cli.workers import rollup

            return rollup
    return None
