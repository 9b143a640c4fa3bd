"""Writes docs/cli.md from the help of the commands.

make docs
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from sfm_stream.cli.commands import COMMANDS, imported
from sfm_stream.cli.main import cli

PAGE = Path(__file__).with_name("cli.md")
PROGRAM = "sfm-stream"
WIDTH = 100
HEAD = """# Commands

Written by `make docs` from the help of the commands, which `sfm-stream COMMAND --help` shows.

Every command names what is wrong with its place, what was expected there and what to do, on standard error, and ends
with an exit code that says of which kind it is ([operating](operating.md#exit-codes)). What a program may read is JSON
with `--json`, on standard output.

## Shell completion

Commands, options and the values of options are completed by the shell, once it has read what the program prints for it:

| shell | line | in |
|---|---|---|
| bash, from 4.4 on | `eval "$(_SFM_STREAM_COMPLETE=bash_source sfm-stream)"` | `~/.bashrc` |
| zsh | `eval "$(_SFM_STREAM_COMPLETE=zsh_source sfm-stream)"` | `~/.zshrc`, behind `compinit` |
| fish | `_SFM_STREAM_COMPLETE=fish_source sfm-stream \\| source` | `~/.config/fish/completions/sfm-stream.fish` |

That starts the program once for each shell. What is printed may be kept in a file instead, and read from there; it
changes with the version of click, not with that of sfm-stream.
"""


def commands() -> Iterator[tuple[click.Command, click.Context]]:
    """Each command with its context, those of a group behind it; first the program itself."""
    program = click.Context(
        cli, info_name=PROGRAM, max_content_width=WIDTH, terminal_width=WIDTH, **cli.context_settings
    )
    yield cli, program
    for name in COMMANDS:
        yield from _with_those_inside(imported(name), name, program)


def _with_those_inside(
    command: click.Command, name: str, parent: click.Context
) -> Iterator[tuple[click.Command, click.Context]]:
    context = click.Context(command, info_name=name, parent=parent, max_content_width=WIDTH, terminal_width=WIDTH)
    yield command, context
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            if found is not None:
                yield from _with_those_inside(found, inner, context)


def page() -> str:
    """The whole page."""
    parts = [HEAD.strip("\n")]
    for command, context in commands():
        said = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
        parts += [f"## `{context.command_path}`", f"```text\n{said}\n```"]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
