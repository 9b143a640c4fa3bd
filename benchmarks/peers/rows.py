"""The rows: which peer counts what, and how. Each has a small and a large data set; steady is the slope between."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.peers import checks, installs, sfm
from benchmarks.peers.checks import Checked
from benchmarks.peers.data_sets import DataSet, Scale
from benchmarks.peers.process import Answers, Used, run
from benchmarks.peers.site import PROGRAMS, Site

Measure = Callable[[Site, str, DataSet], tuple[Used, Checked]]
"""One run, under a name that begins the names of all that it makes."""


@dataclass(frozen=True)
class Row:
    """small: None for a row that needs no slope. of: what is counted by the CPU second. cost_s: (small, large), about
    how long a run takes on a quiet machine."""

    name: str
    title: str
    measure: Measure
    small: DataSet | None
    large: DataSet
    cost_s: tuple[float, float]
    of: str = "events"
    prints_rate: bool = False
    """Whether the program itself measures what is asked for."""

    def count(self, data: DataSet) -> int:
        return data.total if self.of == "events" else data.releases


def rows(scale: Scale) -> list[Row]:
    """All that can be measured here, in the order of the table."""
    hundred, short = (scale.hundred(1), scale.hundred(scale.windows)), scale.hundred(scale.short_windows)
    thousand = (scale.thousand(1), scale.thousand(scale.windows))
    found = [
        Row("bare", "confluent-kafka, consume, msgspec, xxhash", bare, *hundred, (3, 5)),
        Row("by-hand-confluent", "by hand, confluent-kafka", partial(by_hand, "confluent"), *hundred, (3, 7)),
        Row(
            "by-hand-kafka-python", "by hand, kafka-python", partial(by_hand, "kafka-python"), hundred[0], short, (4, 8)
        ),
        Row("streams", "Kafka Streams, HLL", streams, *hundred, (11, 23)),
        Row("streams-thousand", "Kafka Streams, HLL, 1,000 a release", streams, *thousand, (11, 22)),
        Row("bytewax", "bytewax, set", partial(framework, "bytewax_set.py"), *hundred, (6, 33)),
        Row("quixstreams", "quixstreams, collect", partial(framework, "quix_collect.py"), hundred[0], short, (12, 28)),
        Row("file-loop", "a loop over the file, msgspec", file_loop, *hundred, (1, 2)),
    ]
    for kernel in sfm.kernels():
        found += _of_sfm(kernel, scale)
    return found


def _of_sfm(kernel: str, scale: Scale) -> list[Row]:
    hundred, short = (scale.hundred(1), scale.hundred(scale.windows)), scale.hundred(scale.short_windows)
    thousand = (scale.thousand(1), scale.thousand(scale.windows))
    single = (scale.hundred(1, one_a_batch=True), scale.hundred(scale.windows, one_a_batch=True))
    slow = 2 if kernel == "python" else 1

    def row(
        name: str, title: str, how: Callable[[Site, str, DataSet, str], tuple[Used, Checked]], *more: object
    ) -> Row:
        measure: Measure = lambda site, run, data: how(site, run, data, kernel)  # noqa: E731 - it needs no name of its own
        return Row(f"sfm-{kernel}{name}", f"sfm-stream, {kernel}{title}", measure, *more)  # type: ignore[arg-type]

    return [
        row("", ", publisher on", sfm.ingest(True), *hundred, (3, 4 * slow)),
        row("-thousand", ", publisher on, 1,000 a release", sfm.ingest(True), *thousand, (3, 3 * slow)),
        row("-outbox", ", no publisher", sfm.ingest(False), *hundred, (3, 4 * slow)),
        row("-ingest", ", no releases", sfm.without_releases, *hundred, (3, 3 * slow)),
        row("-single", ", no releases, one record a batch", sfm.without_releases, *single, (3, 4 * slow)),
        row("-restart", ", restart", sfm.restart, *hundred, (4, 4 * slow)),
        row("-rollup", ", roll-up", sfm.rollup, thousand[1], hundred[1], (3, 4 * slow), "releases"),
        row("-files", ", files", sfm.files, *hundred, (2, 2 * slow)),
        row("-flips", ", flips", sfm.flips, None, short, (0, 4), "releases", True),
    ]


def bare(site: Site, name: str, data: DataSet) -> tuple[Used, Checked]:
    call = [str(installs.environment("by-hand")), str(PROGRAMS / "bare.py")]
    used = run(site, call, _env(site, name, data), None, site.folder / f"{name}.log")
    return used, checks.hashed(used.said, data)


def by_hand(client: str, site: Site, name: str, data: DataSet) -> tuple[Used, Checked]:
    """kafka-python is that of sfm-stream itself, with the same version and checksums."""
    python = str(installs.environment("by-hand")) if client == "confluent" else sys.executable
    out = site.new_topic(f"{name}.out")
    call = [python, str(PROGRAMS / "by_hand.py"), client]
    used = run(site, call, _env(site, name, data, out), None, site.folder / f"{name}.log")
    return used, _exact(site, out, data)


def streams(site: Site, name: str, data: DataSet) -> tuple[Used, Checked]:
    # A heap as large as the other peers' memory, and the collectors and compilers that Java takes for its processors.
    jvm = ["java", "-Xms256m", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    out = site.new_topic(f"{name}.out")
    call = [*jvm, "-cp", installs.java_classes(), "DistinctUsers"]
    watch = Answers(site, out, data.releases)
    used = run(site, call, _env(site, name, data, out), watch, site.folder / f"{name}.log")
    return used, _exact(site, out, data, sketched=True)


def framework(program: str, site: Site, name: str, data: DataSet) -> tuple[Used, Checked]:
    out = site.new_topic(f"{name}.out")
    call = [str(installs.environment("frameworks")), str(PROGRAMS / program)]
    watch = Answers(site, out, data.releases)
    used = run(site, call, _env(site, name, data, out), watch, site.folder / f"{name}.log")
    return used, _exact(site, out, data)


def file_loop(site: Site, name: str, data: DataSet) -> tuple[Used, Checked]:
    call = [sys.executable, str(PROGRAMS / "file_loop.py"), str(site.lines_of(data))]
    used = run(site, call, {}, None, site.folder / f"{name}.log")
    lines = data.total - data.pages
    return used, Checked(used.said.split() == [str(lines)], f"{lines:,} lines decoded")


def _env(site: Site, name: str, data: DataSet, out: str = "") -> dict[str, str]:
    state = site.folder / f"{name}-state"
    os.makedirs(state, exist_ok=True)
    return {
        "BOOTSTRAP": site.bootstrap,
        "TOPIC": site.topic_of(data),
        "OUT": out,
        "TOTAL": str(data.total),
        "GROUP": name,
        "STATE": str(state),
    }


def _exact(site: Site, out: str, data: DataSet, sketched: bool = False) -> Checked:
    checked = checks.exact(site.bootstrap, out, data, sketched)
    site.delete(out.removesuffix(".out"))
    return checked
