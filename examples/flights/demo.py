"""Distinct aircraft for each airport and each carrier in New York's flights of January 2013, counted privately.

    python examples/flights/demo.py [--all] [--data year.jsonl.gz] [--folder published]

Runs `sfm-stream` on two configurations and shows what it published beside the true counts, which a counter with plain
sets makes from the same file. In earnest nobody has the true counts; here they show what the noise costs. Then it
counts the same file in the way of the paper alone, days as unions of hours: what that costs, and how far off it is.
What was published stays in the folder, to be looked at.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfm_stream.answers.key_notation import key_text

HERE = Path(__file__).resolve().parent
NEW_YORK = ZoneInfo("America/New_York")
MADE = ("january.jsonl.gz", "by_*.toml", "flights.sqlite*")
"""What it leaves in its folder."""
SHOWN_DAY = "2013-01-16"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every hour and day, not only a selection")
    parser.add_argument("--data", type=Path, default=HERE / "january.jsonl.gz", help="flights from make_data.py")
    parser.add_argument("--folder", type=Path, default=HERE / "published", help="where to publish")
    options = parser.parse_args()
    out = Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=120, no_color=True)
    worth = table_of("what a day is worth", "published", "epsilon of a day", "error of a day", "intervals that hold")
    folder = emptied(options.folder)
    shutil.copy(options.data, folder / "january.jsonl.gz")
    configs = {field: folder / f"by_{field}.toml" for field in ("origin", "carrier")}
    for field, config in configs.items():
        shutil.copy(HERE / config.name, config)
        run(config)
        truth = true_counts(options.data, field)
        answers = {grain: published(config, grain) for grain in ("hour", "day", "month")}
        for grain, rows in answers.items():
            out.print(estimates(field, grain, [row for row in rows if options.all or shown(row)], truth))
        out.print(accuracy_of_hours(answers["hour"], truth) + "\n")
        worth.add_row(f"{field}: days from raw", *accuracy_of_days(answers["day"], truth))
        unions = folder / f"by_{field}_as_unions.toml"
        unions.write_text(as_unions_of_hours(field, config.read_text()))
        run(unions)
        worth.add_row(f"{field}: unions of hours", *accuracy_of_days(published(unions, "day"), truth))
    out.print(worth)
    out.print(
        "\nThe error is the median of all days with 100 aircraft or more, and the epsilon what an aircraft loses that "
        "departs in every hour: a union pays for each hour of its day, and has the noise of each.\n\n"
        "What was protected: whether an aircraft used an airport (or flew for a carrier) in a given hour, day or "
        "month. That changes the probability of anything that is published of the hour by at most a factor e^0.25, of "
        "the day and of the month by e^1 each (docs/privacy.md): an aircraft that departs in h hours of a day has lost "
        "h x 0.25 + 1 by the evening, and 1 for the month.\n"
        "At which cost: an hour is off by some seven aircraft, a day by some three, a month by some seven and one per "
        "cent. What to choose for other data: sfm-stream plan (docs/planning.md).\n\n"
        "Look at it in a browser, at http://127.0.0.1:8464 (docs/page.md):"
    )
    # For itself and never cut: it is there to be copied.
    print(shlex.join(map(from_here, (program(), "serve", *configs.values()))))


def emptied(folder: Path) -> Path:
    """The folder, without what an earlier demo has left in it. One that holds anything else is left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    made = [path for name in MADE for path in folder.glob(name)]
    if others := set(folder.iterdir()) - set(made):
        raise SystemExit(f"{folder} holds {min(others).name}, which is not the demo's: give another --folder")
    for path in made:
        path.unlink()
    return folder


def program() -> Path | str:
    """sfm-stream as it is called here: by its place in an environment that nobody has activated."""
    beside = Path(sys.executable).with_name("sfm-stream")
    return beside if beside.exists() and shutil.which("sfm-stream") != str(beside) else "sfm-stream"


def from_here(place: Path | str) -> str:
    """A path as it is written from the working directory, if it lies below it."""
    if isinstance(place, str):
        return place
    return str(place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place)


def run(config: Path) -> None:
    subprocess.run([sys.executable, "-m", "sfm_stream.cli", "run", config], check=True)


def as_unions_of_hours(field: str, text: str) -> str:
    """The configuration with hours of epsilon 4 and nothing else: days are their unions, by the paper's method."""
    head, tail = text[: text.index("[[spans]]")], text[text.index("[rollup]") :]
    for setting, value in (
        ("id", f'"flights-by-{field}-as-unions"'),
        ("buckets", "128"),
        ("levels", "16"),
        ("epsilon", "4"),
        ("count_share", "0"),
        ("max_epsilon_per_item_day", "100"),
    ):
        head = re.sub(rf"^{setting} = .*$", f"{setting} = {value}", head, flags=re.M)
    return head + tail


def published(config: Path, grain: str) -> list[dict]:
    call = [sys.executable, "-m", "sfm_stream.cli", "estimate", config, "--by", grain, "--json"]
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def true_counts(data: Path, field: str) -> dict[tuple[str, datetime, datetime], int]:
    """Distinct aircraft by (key, from, to), for hours and local days and months, with plain sets."""
    seen = defaultdict(set)
    with gzip.open(data) as lines:
        for line in lines:
            flight = json.loads(line)
            if flight["tailnum"] is None:
                continue
            at = datetime.fromisoformat(flight["at"])
            hour = at.replace(minute=0, second=0)
            day = at.astimezone(NEW_YORK).date()
            month = day.replace(day=1)
            seen[flight[field], hour, hour + timedelta(hours=1)].add(flight["tailnum"])
            for first, next_one in (
                (day, day + timedelta(days=1)),
                (month, (month + timedelta(days=31)).replace(day=1)),
            ):
                seen[flight[field], midnight(first), midnight(next_one)].add(flight["tailnum"])
    return {place: len(aircraft) for place, aircraft in seen.items()}


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=NEW_YORK).astimezone(UTC)


def span(row: dict) -> tuple[datetime, datetime]:
    return datetime.fromisoformat(row["from"]), datetime.fromisoformat(row["to"])


def shown(row: dict) -> bool:
    """Three hours of one day, three days, and the month, of a few keys."""
    start, end = (moment.astimezone(NEW_YORK) for moment in span(row))
    if row["grain"] == "month":
        return big(row)
    if row["grain"] == "hour":
        return start.date().isoformat() == SHOWN_DAY and start.hour in (6, 8, 17) and big(row)
    return "2013-01-14" <= start.date().isoformat() <= SHOWN_DAY and big(row) and end > start


def big(row: dict) -> bool:
    return row["key"][0] in ("EWR", "JFK", "LGA", "UA", "B6", "AA", "HA")


def table_of(title: str, first: str, *others: str) -> Table:
    result = Table(title=title, box=None, title_justify="left", pad_edge=False)
    result.add_column(first)
    for name in others:
        result.add_column(name, justify="right")
    return result


def estimates(field: str, grain: str, rows: list[dict], truth: dict) -> Table:
    columns = ("from (New York)", "to", "estimate", "95 % interval", "epsilon", "true count")
    result = table_of(f"Distinct aircraft by {field} and {grain}", field, *columns)
    for row in rows:
        start, end = span(row)
        result.add_row(
            Text(key_text(row["key"])),
            *(f"{moment.astimezone(NEW_YORK):%Y-%m-%d %H:%M}" for moment in (start, end)),
            f"{row['estimate']:.0f}",
            f"{row['low']:.0f} .. {high(row):.0f}",
            f"{row['epsilon']:g}",
            str(count_of(row, truth)),
        )
    return result


def accuracy_of_hours(rows: list[dict], truth: dict) -> str:
    errors = sorted(abs(row["estimate"] - count_of(row, truth)) for row in rows)
    half = errors[len(errors) // 2]
    return (
        f"{held(rows, truth)} intervals of hours hold the true count; half of the hours are off by {half:.0f} or less"
    )


def accuracy_of_days(rows: list[dict], truth: dict) -> tuple[str, str, str]:
    """(the epsilon of a day, the median error of days with 100 aircraft or more, how many intervals hold)."""
    large = [row for row in rows if count_of(row, truth) >= 100]
    errors = sorted(abs(row["estimate"] - count_of(row, truth)) / count_of(row, truth) for row in large)
    most = max(row["epsilon"] for row in rows)
    return f"{most:g}", f"{errors[len(errors) // 2]:.1%}", held(rows, truth)


def held(rows: list[dict], truth: dict) -> str:
    return f"{sum(row['low'] <= count_of(row, truth) <= high(row) for row in rows):,} of {len(rows):,}"


def high(row: dict) -> float:
    return float("inf") if row["high"] is None else row["high"]


def count_of(row: dict, truth: dict) -> int:
    return truth.get((row["key"][0], *span(row)), 0)


if __name__ == "__main__":
    main()
