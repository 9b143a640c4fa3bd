"""From runs to a document, and from the document to the tables of docs/performance.md. Pure: no clock, no files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.peers.results import Result
from benchmarks.peers.rows import Row

RELEASE_EVENTS = 100
"""Events of one release in the data set by which the CPU time of a release is told."""


@dataclass(frozen=True)
class Figures:
    """Medians of one row, and the runs that they are of. Rates are of events, or of releases where `of` says so.

    whole: by the CPU second of the process's whole life, on the large set. steady: of what the large set has more than
    the small one. steady_range: of the repetitions by themselves. wall_s_a_million: seconds by the clock on the wall
    for each million more. rate: what a program measured itself, else 0.
    """

    name: str
    title: str
    of: str
    repetitions: int
    counts: tuple[int, int]
    small_cpu_s: tuple[float, ...]
    large_cpu_s: tuple[float, ...]
    whole: float
    steady: float
    steady_range: tuple[float, float]
    wall_s_a_million: float
    rate: float
    rss_mb: float
    right: bool
    said: str


def figures(row: Row, results: Sequence[Result]) -> Figures | None:
    """Of those repetitions that have all sizes of a row; None where there is none."""
    runs = {(r.size, r.repetition): r for r in results if r.row == row.name}
    sizes = ("large",) if row.small is None else ("small", "large")
    whole = sorted({n for _, n in runs if all((size, n) in runs for size in sizes)})
    if not whole:
        return None
    large = [runs["large", n] for n in whole]
    small = [runs["small", n] for n in whole] if row.small is not None else []
    more = large[0].count - (small[0].count if small else 0)
    apart = [b.cpu_s - a.cpu_s for a, b in zip(small, large, strict=False)]
    between = _median(large, "cpu_s") - _median(small, "cpu_s") if small else 0.0
    walls = _median(large, "wall_s") - _median(small, "wall_s") if small else 0.0
    answers = [*small, *large]
    return Figures(
        name=row.name,
        title=row.title,
        of=row.of,
        repetitions=len(whole),
        counts=(small[0].count if small else 0, large[0].count),
        small_cpu_s=tuple(round(r.cpu_s, 3) for r in small),
        large_cpu_s=tuple(round(r.cpu_s, 3) for r in large),
        whole=large[0].count / _median(large, "cpu_s"),
        steady=more / between if between > 0 else 0.0,
        steady_range=(_rate(more, max(apart, default=0)), _rate(more, min(apart, default=0))),
        wall_s_a_million=walls * 1e6 / more,
        rate=_median(large, "rate"),
        rss_mb=max(r.rss_mb for r in large),
        right=all(r.right for r in answers),
        said=next((r.said for r in reversed(answers) if not r.right), large[-1].said),
    )


def document(
    rows: Sequence[Row], results: Sequence[Result], about: Mapping[str, Any], missing: Mapping[str, str]
) -> dict[str, Any]:
    """Everything that a page says, as JSON. missing: row to why it was not run."""
    found = [made for row in rows if (made := figures(row, results)) is not None]
    return {"about": dict(about), "rows": [asdict(made) for made in found], "missing": dict(missing)}


def peers_table(said: Mapping[str, Any]) -> str:
    """One line for each row; the last column is what sfm-stream with its publisher does, over the row's steady rate."""
    rows = {row["name"]: row for row in said["rows"]}
    lines = [
        "| | CPU s | whole run | steady | range of it | RSS, MB | answers | sfm-stream is |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        if row["rate"]:
            lines.append(f"| {row['title']} | | | {_short(row['rate'])} | | | {row['said']} | |")
            continue
        own = "-thousand" if "thousand" in name else ""
        best = next((rows[n] for n in (f"sfm-native{own}", f"sfm-python{own}") if n in rows), None)
        beside = best and row["steady"] and not name.startswith("sfm") and name != "file-loop"
        times = f"{best['steady'] / row['steady']:.1f} times" if best and beside else ""
        cpu = f"{median(row['small_cpu_s']):.1f} / {median(row['large_cpu_s']):.1f}"
        spread = f"{_short(row['steady_range'][0])} - {_short(row['steady_range'][1])}"
        right = row["said"] if row["right"] else f"**wrong**: {row['said']}"
        lines.append(
            f"| {row['title']} | {cpu} | {_short(row['whole'])} | {_short(row['steady'])} | {spread} "
            f"| {row['rss_mb']:.0f} | {right} | {times} |"
        )
    lines += [f"| {title} | not run: {why} | | | | | | |" for title, why in said["missing"].items()]
    return "\n".join(lines)


@dataclass(frozen=True)
class Target:
    """least: the measure must be at least the target, else at most. wanted: with the compiled kernel and without."""

    title: str
    measure: str
    wanted: tuple[float, float]
    least: bool = True


TARGETS = (
    Target("of Kafka Streams, 100 events a release, publisher on", "streams", (6, 2.5)),
    Target("the same, 1,000 events a release", "streams-thousand", (12, 4)),
    Target("of bytewax's best row", "bytewax", (12, 5)),
    Target("of quixstreams", "quixstreams", (35, 15)),
    Target("of confluent's bare consume and extract loop, ingest without releases", "bare", (0.9, 0.4)),
    Target("one record a batch, of its own 16 KiB speed", "single", (0.25, 0.2)),
    Target("CPU of a whole release, outbox and public topic included, us", "release", (170, 300), least=False),
    Target("flips in the worker, sketches per CPU second", "flips", (18_000, 9_000)),
    Target("roll-up, sketches per CPU second at 10 windows", "rollup", (3_000, 1_500)),
    Target("restart, s a million held back", "restart", (1.5, 4), least=False),
    Target("files: of a bare msgspec loop, start-up aside", "files", (1, 0.45)),
)


def measured(said: Mapping[str, Any], measure: str, kernel: str) -> float | None:
    """One figure of the targets for one kernel; None where a row that it needs was not measured."""
    rows = {row["name"]: row for row in said["rows"]}
    own = {"streams": "", "streams-thousand": "-thousand", "bytewax": "", "quixstreams": "", "bare": "-ingest"}

    def steady(name: str) -> float | None:
        return rows[name]["steady"] or None if name in rows else None

    def ratio(of: str, to: str) -> float | None:
        a, b = steady(of), steady(to)
        return a / b if a and b else None

    name = f"sfm-{kernel}"
    if measure in own:
        return ratio(name + own[measure], measure)
    if measure == "single":
        return ratio(f"{name}-single", f"{name}-ingest")
    if measure == "files":
        return ratio(f"{name}-files", "file-loop")
    if measure == "release":
        with_all, without = steady(name), steady(f"{name}-ingest")
        return (1 / with_all - 1 / without) * RELEASE_EVENTS * 1e6 if with_all and without else None
    if measure == "rollup":
        return steady(f"{name}-rollup")
    row = rows.get(f"{name}-{measure}")
    if row is None:
        return None
    if measure == "flips":
        return float(row["rate"])
    # A program on one core takes no less time than it works; what its metrics say of the end may be a second old.
    return max(float(row["wall_s_a_million"]), 1e6 / row["steady"]) if row["steady"] else None


def targets_table(said: Mapping[str, Any]) -> str:
    """What was measured beside what was wanted."""
    lines = ["| | native: measured / target | plain pip: measured / target |", "|---|---|---|"]
    for target in TARGETS:
        cells = []
        for kernel, wanted in zip(("native", "python"), target.wanted, strict=True):
            found = measured(said, target.measure, kernel)
            if found is None or found <= 0:
                cells.append(f"not measured / {wanted:,g}")
                continue
            kept = found >= wanted if target.least else found <= wanted
            shown = f"{found:,.0f}" if found >= 50 else f"{found:.2f}"
            cells.append(f"{shown} / {'>=' if target.least else '<='} {wanted:,g}{'' if kept else ' **missed**'}")
        lines.append(f"| {target.title} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def about_text(said: Mapping[str, Any]) -> str:
    """Where and with what it was measured, in two sentences."""
    about = said["about"]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(about["versions"].items()))
    repetitions = sorted({row["repetitions"] for row in said["rows"]})
    return (
        f"Measured on {about['date']} at commit {about['commit']}: {about['machine']}; medians of "
        f"{' to '.join(map(str, repetitions)) or 'no'} repetitions, one row after the other in each of them. "
        f"Load before the run: {about['load']}. Versions: {versions}."
    )


def page_section(said: Mapping[str, Any]) -> str:
    """What stands in docs/performance.md."""
    return f"{about_text(said)}\n\n{targets_table(said)}\n\n{peers_table(said)}\n"


def _median(runs: Sequence[Result], field: str) -> float:
    return float(median(getattr(run, field) for run in runs))


def _rate(count: int, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0


def _short(rate: float) -> str:
    if rate >= 1e6:
        return f"{rate / 1e6:.2f} M"
    return f"{rate / 1000:.1f} k" if rate >= 10_000 else f"{rate:,.0f}"
