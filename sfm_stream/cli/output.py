"""What commands print for programs: JSON."""

from __future__ import annotations

import json

import click


def echo_json(value: object, err: bool = False) -> None:
    """One JSON document on one line, on standard output or standard error."""
    click.echo(json.dumps(value, allow_nan=False), err=err)
