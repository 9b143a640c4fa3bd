"""docs/paper.md: its tables are those of the CSVs beside it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from benchmarks.paper.claims import check, report
from benchmarks.paper.figures import FIGURES
from benchmarks.paper.summary import read_csv
from benchmarks.paper.tables import TABLES, readings_table

ROOT = Path(__file__).resolve().parents[2]
PAGE, FOLDER = ROOT / "docs" / "paper.md", ROOT / "docs" / "paper"
_PLACE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.S)


def fill(page: str, folder: Path) -> str:
    """The page with every table between its markers made anew from the CSVs in the folder."""
    rows = {name: read_csv(folder / f"{name}.csv") for name in FIGURES}
    tables = {name: TABLES[name](rows[name]) for name in FIGURES}
    tables["claims"] = report(check(rows))
    tables["readings"] = readings_table(rows["figure4"])
    return _PLACE.sub(lambda place: f"{place[1]}\n{tables[place[2]]}\n{place[3]}", page)


def publish(results: Path) -> None:
    """Copy CSVs and PNGs of a run to docs/paper and renew the tables of docs/paper.md."""
    FOLDER.mkdir(exist_ok=True)
    for name in FIGURES:
        for kind in ("csv", "png"):
            shutil.copyfile(results / f"{name}.{kind}", FOLDER / f"{name}.{kind}")
    PAGE.write_text(fill(PAGE.read_text(), FOLDER))
