"""`sfm-stream estimate`: distinct counts from what is published."""

from __future__ import annotations

from pathlib import Path

import click

from sfm_stream.answers.answer import answer
from sfm_stream.answers.release_terms import release_terms
from sfm_stream.answers.row_json import row_json
from sfm_stream.cli.output import echo_json
from sfm_stream.cli.question import FROM, KEY, LAST, TO, question_of
from sfm_stream.composition.published import published
from sfm_stream.config.config import load_config
from sfm_stream.readable import visible


@click.command()
@click.argument("config", type=click.Path(dir_okay=False, path_type=Path))
@KEY
@FROM
@TO
@LAST
@click.option(
    "--by",
    type=click.Choice(["range", "window", "quarter", "hour", "day", "week", "month"]),
    help="One row for the whole span (default with --from and --to, and with --last), or one a window, hour, day "
    "(default), week or month.",
)
@click.option("--joined", is_flag=True, help="One row for all keys together: the items under at least one of them.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document for each row.")
def estimate(
    config: Path,
    keys: tuple[str, ...],
    since: str | None,
    until: str | None,
    last: str | None,
    by: str | None,
    joined: bool,
    as_json: bool,
) -> None:
    """Distinct counts with 95 % intervals from the output of CONFIG. Asking costs no privacy, however often.

    Times are those of rollup.zone, as they are shown. Exit code 9 where nothing that is published is an answer.
    """
    loaded = load_config(config)
    grain = by or ("range" if last or (since and until) else "day")
    question = question_of(loaded, grain, keys, since, until, last, joined)
    terms = release_terms(loaded)
    with published(loaded) as reader:
        answered = answer(reader, terms, question)
    if as_json:
        for row in answered.rows:
            echo_json(row_json(row))
    else:
        from sfm_stream.cli.screen import print_answer  # rich, which programs that read JSON need not wait for

        print_answer(answered.rows, question.zone)
    for line in answered.unanswered:
        click.echo(visible(line), err=True)
