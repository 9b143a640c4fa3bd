"""`sfm-stream budget`: what every epoch and span has spent, and what a person has lost of it at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import Any

import click

from sfm_stream.answers.person_loss import Activity, Loss, losses
from sfm_stream.answers.spent import SpentSpan, spent
from sfm_stream.cli.output import echo_json
from sfm_stream.composition.published import published
from sfm_stream.config.config import Config, load_config
from sfm_stream.privacy.epsilon import decimals
from sfm_stream.privacy.key_rules import PresenceIsPublic
from sfm_stream.readable import instant, local

ASSUMES = (
    "Basic composition: what every release of every window costs is added, whatever it showed; a window costs the same "
    "where a key was withheld in it. It is counted from the markers that are still published."
)


@click.command()
@click.argument("config", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--active",
    type=click.IntRange(1),
    metavar="WINDOWS",
    help="Windows of the finest span in which the person is active on a day, at most.  [default: all]",
)
@click.option("--days", type=click.IntRange(1, 7), default=7, show_default=True, help="Days a week on which it is.")
@click.option(
    "--keys-per-window",
    "keys",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Keys it has in a window, of whichever span it has the most.",
)
@click.option("--json", "as_json", is_flag=True, help="As one JSON document.")
def budget(config: Path, active: int | None, days: int, keys: int, as_json: bool) -> None:
    """What the pipeline of CONFIG has spent so far, and the most that a person has lost of it.

    Only published records are read, and asking costs nothing. For each epoch and released span: the windows that are
    decided, and what one of them costs whoever is active in it. Then the worst day, week and month so far, and all of
    them together, for a person who is active as the options say. Exit code 9 where no window is decided.
    """
    loaded = load_config(config)
    with published(loaded) as reader:
        spans = spent(reader, loaded)
    activity = Activity(active, days, keys)
    lost = losses(spans, activity, loaded.calendar)
    if as_json:
        echo_json(_document(loaded, spans, activity, lost))
        return
    from sfm_stream.cli.screen import print_table  # rich, which programs that read JSON need not wait for

    zone = loaded.calendar.zone
    has_delta = any(span.price is not None and span.price.delta for span in spans)
    heads = ("epoch", "span", "windows", f"from ({zone})", "to", "epsilon of one", "bits + count + selection")
    print_table((*heads, *(["delta of one"] if has_delta else [])), (_cells(span, has_delta) for span in spans))
    click.echo(f"\n{_person(activity)} has lost at most:\n")
    print_table(
        ("in", f"from ({zone})", "to", "epsilon", *(["delta"] if has_delta else [])), _rows(lost, zone, has_delta)
    )
    click.echo(f"\nThe configuration allows {_plain(loaded.budget.epsilon_per_day)} a day under one key.")
    click.echo(ASSUMES)
    for note in _notes(loaded, spans):
        click.echo(f"note: {note}", err=True)


def _cells(span: SpentSpan, has_delta: bool) -> tuple[str, ...]:
    price = span.price
    parts = "" if price is None else " + ".join(map(_plain, (price.bits, price.count, price.selection)))
    return (
        str(span.epoch),
        span.name,
        f"{span.windows:,}",
        local(span.decided.start_ms, span.zone),
        local(span.decided.end_ms, span.zone),
        "not known" if price is None else _plain(price.epsilon),
        parts,
        *([("" if price is None else _plain(price.delta))] if has_delta else []),
    )


def _rows(lost: Sequence[Loss], zone: str, has_delta: bool) -> Iterator[tuple[str, ...]]:
    for loss in lost:
        name = loss.period if loss.period == "so far" else f"a {loss.period}"
        times = local(loss.time.start_ms, zone), local(loss.time.end_ms, zone)
        known = loss.epsilon is not None
        epsilon = "not known" if loss.epsilon is None else _plain(loss.epsilon)
        yield name, *times, epsilon, *([_plain(loss.delta) if known else ""] if has_delta else [])


def _person(activity: Activity) -> str:
    windows = activity.windows_a_day
    active = "in every window" if windows is None else f"in {windows} of the shortest windows a day"
    days = "" if activity.days_a_week == 7 else f", {activity.days_a_week} days a week"
    keys = "one key" if activity.keys == 1 else f"{activity.keys} keys in each"
    return f"A person who is active {active}{days}, under {keys},"


def _notes(config: Config, spans: Sequence[SpentSpan]) -> Iterator[str]:
    """What has to be known of the figures: what no epsilon bounds, and how those of other settings were found."""
    if isinstance(config.keys, PresenceIsPublic):
        yield (
            'privacy.keys = "presence_is_public": that a key had an item in a window is shown as it is. No epsilon '
            "bounds what somebody who is alone under a key loses by that, and it is in none of these sums"
        )
    selection = config.budget.epsilon_selection
    selected = f"taken to be {_plain(selection)}, as in this configuration" if selection else "not counted"
    for epoch in sorted({span.epoch for span in spans if not span.is_configured}):
        yield (
            f"epoch {epoch} had other settings, or has decided nothing yet: its epsilons are those of its releases. If "
            f"it selected its keys, what that cost is in no record; it is {selected}"
        )
    for span in spans:
        if span.price is None:
            yield (
                f"epoch {span.epoch}, {span.name}: what it costs is not known, as neither its first nor its last "
                "windows have a release. Ask with the configuration of that epoch"
            )


def _document(config: Config, spans: Sequence[SpentSpan], activity: Activity, lost: Sequence[Loss]) -> dict[str, Any]:
    return {
        "pipeline": config.pipeline.id,
        "zone": config.calendar.zone,
        "spans": [_span_json(span) for span in spans],
        "person": {
            "active": activity.windows_a_day,
            "days": activity.days_a_week,
            "keys_per_window": activity.keys,
            "lost": [
                {
                    "in": loss.period,
                    "from": instant(loss.time.start_ms),
                    "to": instant(loss.time.end_ms),
                    "epsilon": None if loss.epsilon is None else float(loss.epsilon),
                    "delta": None if loss.epsilon is None else float(loss.delta),
                }
                for loss in lost
            ],
        },
        "allowed_a_day": float(config.budget.epsilon_per_day),
        "assumes": ASSUMES,
        "notes": list(_notes(config, spans)),
    }


def _span_json(span: SpentSpan) -> dict[str, Any]:
    names = {
        "epsilon": "epsilon",
        "epsilon_bits": "bits",
        "epsilon_count": "count",
        "epsilon_selection": "selection",
        "delta": "delta",
    }
    price = span.price
    return {
        "epoch": span.epoch,
        "span": span.name,
        "windows": span.windows,
        "from": instant(span.decided.start_ms),
        "to": instant(span.decided.end_ms),
        "settings_of_configuration": span.is_configured,
        **{name: None if price is None else float(getattr(price, part)) for name, part in names.items()},
    }


def _plain(number: Decimal) -> str:
    """Six digits, rounded up: no loss is shown smaller than it is."""
    with decimals(6, ROUND_CEILING):
        return f"{+number:g}" if number else "0"
