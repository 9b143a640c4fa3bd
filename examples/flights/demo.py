"""Distinct aircraft for each airport and each carrier in New York's flights of January 2013, counted privately.

    python examples/flights/demo.py [--all] [--data year.jsonl.gz]

Runs `sfm-stream` on two configurations and shows what it published beside the true counts, which a counter with plain
sets makes from the same file. In earnest nobody has the true counts; here they show what the noise costs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfm_stream.answers.key_notation import key_text

HERE = Path(__file__).resolve().parent
NEW_YORK = ZoneInfo("America/New_York")
SHOWN_DAY = "2013-01-16"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every hour and day, not only a selection")
    parser.add_argument("--data", type=Path, default=HERE / "january.jsonl.gz", help="flights from make_data.py")
    options = parser.parse_args()
    out = Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=120, no_color=True)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(options.data, Path(folder) / "january.jsonl.gz")
        for field in ("origin", "carrier"):
            config = Path(folder) / f"by_{field}.toml"
            shutil.copy(HERE / config.name, config)
            subprocess.run([sys.executable, "-m", "sfm_stream.cli", "run", config], check=True)
            truth = true_counts(options.data, field)
            for grain in ("hour", "day"):
                rows = [row for row in published(config, grain) if options.all or shown(row)]
                out.print(table(field, grain, rows, truth))
            out.print(accuracy(published(config, "day"), truth))
    out.print(
        "\nWhat was protected: whether an aircraft used an airport (or flew for a carrier) in a given hour, which "
        "changes the probability of anything that is published by at most a factor e^epsilon, epsilon = "
        f"{epsilon_of('by_origin.toml')} (docs/privacy.md).\n"
        "At which cost: every count of an hour is off by some three aircraft and that of a day as said above, and "
        "an aircraft that departs in h hours of a day has lost h times that epsilon by the evening (at most the column "
        "epsilon), which is why the window is the longest there is, an hour."
    )


def published(config: Path, grain: str) -> list[dict]:
    call = [sys.executable, "-m", "sfm_stream.cli", "estimate", config, "--by", grain, "--json"]
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def true_counts(data: Path, field: str) -> dict[tuple[str, datetime, datetime], int]:
    """Distinct aircraft by (key, from, to), for hours and local days, with plain sets."""
    seen = defaultdict(set)
    with gzip.open(data) as lines:
        for line in lines:
            flight = json.loads(line)
            if flight["tailnum"] is None:
                continue
            at = datetime.fromisoformat(flight["at"])
            hour = at.replace(minute=0, second=0)
            day = at.astimezone(NEW_YORK).date()
            midnights = [datetime(d.year, d.month, d.day, tzinfo=NEW_YORK) for d in (day, day + timedelta(days=1))]
            seen[flight[field], hour, hour + timedelta(hours=1)].add(flight["tailnum"])
            seen[flight[field], midnights[0].astimezone(UTC), midnights[1].astimezone(UTC)].add(flight["tailnum"])
    return {place: len(aircraft) for place, aircraft in seen.items()}


def span(row: dict) -> tuple[datetime, datetime]:
    return datetime.fromisoformat(row["from"]), datetime.fromisoformat(row["to"])


def shown(row: dict) -> bool:
    """One day's hours for the morning, and one week of days."""
    start, end = (moment.astimezone(NEW_YORK) for moment in span(row))
    if row["grain"] == "hour":
        return start.date().isoformat() == SHOWN_DAY and start.hour in (6, 8, 17) and big(row)
    return "2013-01-14" <= start.date().isoformat() <= SHOWN_DAY and big(row) and end > start


def big(row: dict) -> bool:
    return row["key"][0] in ("EWR", "JFK", "LGA", "UA", "B6", "AA", "HA")


def table(field: str, grain: str, rows: list[dict], truth: dict) -> Table:
    result = Table(title=f"Distinct aircraft by {field} and {grain}", box=None, title_justify="left", pad_edge=False)
    for name in (field, "from (New York)", "to"):
        result.add_column(name)
    for name in ("estimate", "95 % interval", "epsilon", "true count", "status"):
        result.add_column(name, justify="right")
    for row in rows:
        start, end = span(row)
        high = "inf" if row["high"] is None else f"{row['high']:.0f}"
        result.add_row(
            Text(key_text(row["key"])),
            *(f"{moment.astimezone(NEW_YORK):%Y-%m-%d %H:%M}" for moment in (start, end)),
            f"{row['estimate']:.0f}",
            f"{row['low']:.0f} .. {high}",
            f"{row['epsilon']:.0f}",
            str(truth.get((row["key"][0], start, end), 0)),
            row["status"],
        )
    return result


def accuracy(rows: list[dict], truth: dict) -> str:
    """How often the intervals hold, and how far the estimates are off, over all days."""
    errors, held = [], 0
    for row in rows:
        count = truth.get((row["key"][0], *span(row)), 0)
        held += row["low"] <= count <= (float("inf") if row["high"] is None else row["high"])
        if count >= 100:
            errors.append(abs(row["estimate"] - count) / count)
    errors.sort()
    return (
        f"{held} of {len(rows)} intervals of days hold the true count; the median error of a day with 100 aircraft or "
        f"more is {errors[len(errors) // 2]:.0%}\n"
    )


def epsilon_of(name: str) -> str:
    line = next(line for line in (HERE / name).read_text().splitlines() if line.startswith("epsilon"))
    return line.split("=")[1].strip()


if __name__ == "__main__":
    main()
