"""Which levels of a configuration are noise, said before anything is counted."""

from __future__ import annotations

import click

from sfm_stream.config.config import Config


def noise_of(config: Config) -> list[str]:
    """A line for each level of this configuration that is noise."""
    from sfm_stream.planning.forecast import planned_span  # the estimators, which the help of a command need not load
    from sfm_stream.planning.noise import noisy_levels

    return list(noisy_levels([planned_span(span) for span in config.budget.spans], config.calendar))


def warn_of_noise(lines: list[str]) -> None:
    """Print these lines on standard error."""
    for line in lines:
        click.echo(f"warning: {line}", err=True)
