"""`sfm-stream config show` and `config schema`: a configuration as it will run, and what every file may hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from sfm_stream.cli.output import echo_json
from sfm_stream.cli.toml import toml_lines
from sfm_stream.config.config import Config, load_config


@click.group()
def config() -> None:
    """Look at a configuration."""


@config.command()
@click.argument("config", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--statement", "only_statement", is_flag=True, help="The privacy statement alone.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON document.")
def show(config: Path, only_statement: bool, as_json: bool) -> None:
    """Every setting with its default filled in, the cost of a day, and the privacy statement.

    It is TOML that can be used as a configuration in the same folder; the statement is in comments.
    """
    loaded = load_config(config)
    words = loaded.statement
    if as_json:
        echo_json({"settings": _plain(loaded), "fingerprint": loaded.own_fingerprint, "statement": words})
    elif only_statement:
        click.echo(words)
    else:
        for line in toml_lines(loaded.settings):
            click.echo(line)
        for line in words.splitlines():
            click.echo(f"# {line}".rstrip())


@config.command()
def schema() -> None:
    """The JSON Schema of a configuration file, for editors.

    Write it beside the file and name it there in the first line, as "#:schema ./sfm-stream.schema.json": an editor that
    knows such schemas then completes settings, says what each means, and marks what is wrong.
    """
    from sfm_stream.config.schema import config_schema  # the generator, which no other command needs

    click.echo(json.dumps(config_schema(), indent=2))


def _plain(config: Config) -> dict[str, dict[str, Any]]:
    """Tables that are there, as JSON values. No setting holds a secret: those are in files and the environment."""
    plain: dict[str, dict[str, Any] | None] = config.settings.model_dump(mode="json")
    return {name: table for name, table in plain.items() if table is not None}
