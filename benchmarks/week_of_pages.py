"""Hours, days and a week from raw against exact sets: `python benchmarks/week_of_pages.py [--events 1500000]`.

Generated page views of one week over 1,000 pages go through `sfm-stream run` as a file. What is published is compared
with plain sets of the same file. The table of docs/accuracy.md, "A week of page views": a few minutes. The page views
are seeded, the noise is not.
"""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import click
import numpy as np

from sfm_stream.events.page_views import Traffic, page_views
from sfm_stream.units import DAY_MS, HOUR_MS

MONDAY_MS = 1_699_833_600_000
LENGTHS_MS = {"hour": HOUR_MS, "day": DAY_MS, "week": 7 * DAY_MS}
SIZES = (1, 10, 100, 1000, 10_000, 1_000_000)
CONFIG = """
[pipeline]
id = "week"
[input]
path = "views.jsonl"
complete = true
[event]
key = "page"
item = "user"
time = "at"
time_unit = "ms"
[window]
size = "hour"
start = 2023-11-13T00:00:00Z
end = 2023-11-20T00:00:00Z
[sketch]
buckets = 512
levels = 16
[privacy]
epsilon = 0.25
count_share = 0.5
keys = "presence_is_public"
max_epsilon_per_item_day = 8
[[spans]]
size = "day"
epsilon = 1
count_share = 0.2
buckets = 4096
levels = 24
[[spans]]
size = "week"
epsilon = 1
count_share = 0.2
buckets = 4096
levels = 24
[output]
path = "week.sqlite"
"""

Counts = dict[tuple[str, int], int]


def true_counts(path: Path) -> dict[str, Counts]:
    """Distinct users by (page, start of the window), for each span."""
    seen: dict[str, dict[tuple[str, int], set[str]]] = {span: defaultdict(set) for span in LENGTHS_MS}
    with path.open("rb") as lines:
        for line in lines:
            view = json.loads(line)
            since_ms = view["at"] - MONDAY_MS
            if not 0 <= since_ms < 7 * DAY_MS:
                continue
            for span, length_ms in LENGTHS_MS.items():
                seen[span][view["page"], MONDAY_MS + since_ms // length_ms * length_ms].add(view["user"])
    return {span: {window: len(users) for window, users in windows.items()} for span, windows in seen.items()}


def published(folder: Path, span: str) -> list[tuple[str, int, float, float, float]]:
    """(page, start of the window, estimate, low, high) of each release."""
    call = [sys.executable, "-m", "sfm_stream.cli", "estimate", "app.toml", "--by", span, "--json"]
    done = subprocess.run(call, cwd=folder, check=True, capture_output=True, text=True)
    rows = map(json.loads, done.stdout.splitlines())
    return [
        (
            row["key"][0],
            int(np.datetime64(row["from"].rstrip("Z"), "ms").astype(np.int64)),
            row["estimate"],
            row["low"],
            np.inf if row["high"] is None else row["high"],
        )
        for row in rows
    ]


@click.command()
@click.option("--events", default=1_500_000, show_default=True)
def main(events: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        traffic = Traffic(start_ms=MONDAY_MS, per_second=events / (7 * 86_400), bad_share=0.0)
        with (folder / "views.jsonl").open("wb") as sink:
            sink.writelines(page_views(events, 1, traffic))
        (folder / "app.toml").write_text(CONFIG)
        subprocess.run([sys.executable, "-m", "sfm_stream.cli", "run", "app.toml"], cwd=folder, check=True)
        truth = true_counts(folder / "views.jsonl")
        print("| span, true count | releases | error, items | error, % | 95 % intervals that hold, % |")
        print("|---|---|---|---|---|")
        for span, counts in truth.items():
            rows = published(folder, span)
            assert len(rows) == len(counts)
            count = np.array([counts[page, start] for page, start, *_ in rows], float)
            value, low, high = np.array([row[2:] for row in rows]).T
            for least, most in pairwise(SIZES):
                of_size = (count >= least) & (count < most)
                if not of_size.any():
                    continue
                error = value[of_size] - count[of_size]
                rms, relative = np.sqrt(np.mean(error**2)), np.sqrt(np.mean((error / count[of_size]) ** 2))
                held = np.mean((low <= count)[of_size] & (count <= high)[of_size])
                print(
                    f"| {span}, {least:,}..{most - 1:,} | {of_size.sum():,} | {rms:.3g} "
                    f"| {100 * relative:.3g} | {100 * held:.1f} |"
                )


if __name__ == "__main__":
    main()
