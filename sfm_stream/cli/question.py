"""The options that `estimate` and `export` share, and the question that they ask."""

from __future__ import annotations

from collections.abc import Sequence

import click

from sfm_stream.answers.question import Question, parse_question
from sfm_stream.config.config import Config
from sfm_stream.errors import QuestionError

KEY = click.option(
    "--key", "keys", multiple=True, help="Only this key: as it is shown, as JSON, or its fields joined by commas."
)
FROM = click.option(
    "--from", "since", help="Start of the span, on a border of windows: a time, in rollup.zone where it has no offset."
)
TO = click.option("--to", "until", help="End of the span, exclusive.")
LAST = click.option(
    "--last",
    help="In place of --from and --to: so many of the last whole hours, days, weeks (from Monday) or months of "
    "rollup.zone that are over and decided, such as 24h, 7d, 4w, 3mo.",
)


def question_of(
    config: Config,
    grain: str | None,
    keys: Sequence[str],
    since: str | None,
    until: str | None,
    last: str | None = None,
    joined: bool = False,
) -> Question:
    """The question of these options; parse_question has their meaning. Raises click.UsageError."""
    try:
        return parse_question(config, grain, keys, since, until, last, joined=joined)
    except QuestionError as error:
        if error.part:
            raise click.BadParameter(error.problem, param_hint=error.part) from None
        raise click.UsageError(error.problem) from None
