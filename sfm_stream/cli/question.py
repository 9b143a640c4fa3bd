"""What a question is about, in the words that `estimate` and `export` share: --key, --from, --to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from sfm_stream.config import Config
from sfm_stream.sketch.keys import encode_key
from sfm_stream.types import KeyPart, Window

KEY = click.option("--key", "keys", multiple=True, help="Only this key; fields of a longer key are joined by commas.")
FROM = click.option("--from", "since", help="Start of the span: a time, UTC where it has no offset.")
TO = click.option("--to", "until", help="End of the span, exclusive.")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


def asked_span(since: str | None, until: str | None) -> Window:
    """The span between two ISO 8601 times; one that is not given is no border. Raises click.UsageError."""
    span = Window(parse_instant(since) if since else 0, parse_instant(until) if until else 1 << 62)
    if span.start_ms >= span.end_ms:
        raise click.UsageError("--from is not before --to")
    return span


def asked_keys(config: Config, keys: Sequence[str]) -> set[bytes] | None:
    """Canonical bytes of the keys asked for, None for all. Raises click.BadParameter."""
    return {encoded for key in keys for encoded in _encodings(config, key)} or None


def parse_instant(text: str) -> int:
    """Milliseconds of an ISO 8601 time; one without offset is UTC. Raises click.BadParameter."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a time such as 2026-01-31 or 2026-01-31T12:00:00Z") from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _encodings(config: Config, text: str) -> list[bytes]:
    """Canonical bytes that a key on the command line may mean: a number is looked for as text and as an integer."""
    fields = len(config.settings.event.key)
    parts = text.split(",") if fields > 1 else [text] if fields else []
    if len(parts) != fields:
        raise click.BadParameter(f"a key has {fields} fields, joined by commas", param_hint="--key")
    choices: list[tuple[KeyPart, ...]] = [()]
    for part in parts:
        readings: list[KeyPart] = [part]
        if _INTEGER.fullmatch(part) and -(1 << 63) <= int(part) < 1 << 63:
            readings.append(int(part))
        choices = [(*head, reading) for head in choices for reading in readings]
    return [encode_key(choice) for choice in choices]
