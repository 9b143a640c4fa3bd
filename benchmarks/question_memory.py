"""How much memory a question takes: the peak of each, a process of its own, over an output file and over topics.

Run from the root of the repository: python -m benchmarks.question_memory [--keys N] [--hours N] [--minutes N]
[--buckets N] [--share PART] [--days N] [--folder PATH] [--topics] [--only TEXT ..] [--cpu-s N]. It makes a file of so
many hours of windows of so many minutes, with hours, and random sketches of so many buckets x 24 cells; with --days one
of so many days of windows of an hour, with hours and days. --share: of the releases that are there, so that keys have
different numbers of them. --folder: where the file is, or is made and left. --topics: the records are copied into
topics of a broker that is started as for the tests, and asked there. --only: questions whose name has one of these. A
question is stopped after so many CPU seconds (--cpu-s). After its peak stands the most that its memory was in each
quarter of its time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.kafka_nodes import free_ports

from benchmarks import questions, served
from benchmarks.questions import HOUR_MS, ROOT, START_MS, instant
from sfm_stream.units import DAY_MS

MIB = 1 << 20
COMMAND = [sys.executable, "-m", "sfm_stream.cli"]
ASKED = """
import sys
from sfm_stream.answers import Asked, open_answers
with open_answers(sys.argv[1]) as answers:
    print(len(list({call})))
"""
CLUSTER = """
[kafka]
bootstrap = ["{bootstrap}"]
topic = "views-in"
timestamps = "create_time"
accept_any_clock = true
replication = 1
"""


@dataclass(slots=True)
class Watched:
    """A process: its resident memory in MB, looked at ten times a second, and what it has taken in the end."""

    process: subprocess.Popen[bytes]
    seen: list[int] = field(default_factory=list)

    def look(self) -> None:
        while (now := resident(self.process.pid)) is not None:
            self.seen.append(now)
            time.sleep(0.1)

    def quarters(self) -> str:
        """The most in each quarter of its time."""
        parts = [self.seen[len(self.seen) * part // 4 : len(self.seen) * (part + 1) // 4] for part in range(4)]
        return " ".join(str(max(part, default=0)) for part in parts)


def resident(process: int, name: str = "VmRSS") -> int | None:
    """Resident memory of a process in MB (VmHWM: its peak); None where it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return None
    found = [int(line.split()[1]) for line in status.splitlines() if line.startswith(name)]
    return found[0] * 1024 // 1_000_000 if found else None


def ask(name: str, command: Sequence[str], cpu_s: int) -> None:
    """Ask, and print what that took."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))

    began = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=limited)
        watched = Watched(process)
        looking = Thread(target=watched.look)
        looking.start()
        _, status, used = os.wait4(process.pid, 0)
        looking.join()
        errors.seek(0)
        said = errors.read().decode().strip()[-120:]
    ended = "" if not status else f"STOPPED by signal {status}" if status < 256 else f"exit {status >> 8}: {said}"
    cpu = used.ru_utime + used.ru_stime
    peak = used.ru_maxrss * 1024 / 1e6
    print(
        f"{name:44} {peak:6.0f} MB  {cpu:7.1f} CPU s {time.monotonic() - began:7.1f} s  "
        f"quarters {watched.quarters():20} {ended}",
        flush=True,
    )


def commands(config: Path, end_ms: int, has_days: bool, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """A name and a process for each question."""
    whole = ["--from", instant(START_MS), "--to", instant(end_ms)]
    hour = ["--from", instant(START_MS), "--to", instant(START_MS + HOUR_MS)]
    some = [option for number in (1, 2, 3) for option in ("--key", f"/page/{number}")]
    estimates = {
        "by hour": ["--by", "hour"],
        "by window": ["--by", "window"],
        "the whole time": whole,
        "an hour from windows": [*hour, "--by", "range"],
        "the last 2 hours": ["--last", "2h"],
        "three keys as one set": [*hour, *some, "--joined"],
        "three keys as one set, by hour": [*some, "--joined", "--by", "hour"],
        "one key, the whole time": [*whole, "--key", "/page/1"],
    }
    if has_days:
        estimates |= {
            "by day": ["--by", "day"],
            "by week": ["--by", "week"],
            "the last 7 days": ["--last", "7d"],
            "all keys as one set, 10 hours": ["--last", "10h", "--joined"],
        }
    for name, options in estimates.items():
        for form, more in (("json", ["--json"]), ("table", [])):
            yield f"estimate {name}, {form}", [*COMMAND, "estimate", str(config), *options, *more]
    for topic in ("sketches", "rollups"):
        for form in ("csv", "parquet"):
            out = ["--out", str(folder / f"out.{form}"), "--force"]
            yield f"export {topic}, {form}", [*COMMAND, "export", str(config), "--topic", topic, *out]
        of_hour = [*COMMAND, "export", str(config), "--topic", topic, *hour, "--out", "-"]
        yield f"export {topic} of an hour, csv", of_hour
        for form, more in (("json", ["--json"]), ("table", [])):
            yield f"inspect {topic}, {form}", [*COMMAND, "inspect", str(config), "--topic", topic, *more]
    yield "budget", [*COMMAND, "budget", str(config)]
    first, last = f"since='{whole[1]}', until='{hour[3]}'", "last='1h'"
    for name, call in {
        "top of the whole time": f"answers.top(10, since='{whole[1]}', until='{whole[3]}')",
        "top of an hour": f"answers.top(10, {first}, by='hour')",
        "compare two hours, by hour": f"answers.compare(Asked({first}, by='hour'), Asked({last}))",
        "compare two hours, from windows": f"answers.compare(Asked({first}), Asked({last}))",
        "pair of keys in an hour": f"answers.pair(Asked(['/page/1'], {last}), Asked(['/page/2']))",
        "keys": "answers.keys()",
        "completeness": "answers.completeness()",
    }.items():
        yield name, [sys.executable, "-c", ASKED.format(call=call), str(config)]


def requests(end_ms: int, has_days: bool) -> Iterator[tuple[str, dict[str, str]]]:
    """What a server is asked, one after the other."""
    hour = {"from": instant(START_MS), "to": instant(START_MS + HOUR_MS)}
    last = {"other_last": "1h"}
    whole = {"from": instant(START_MS), "to": instant(end_ms)}
    for form in ("json", "jsonl", "csv"):
        yield "estimates", {"by": "hour", "last": "20h", "format": form}
        yield "estimates", {"by": "window", "format": form, **hour}
    yield "estimates", {"by": "window", "key": "/page/1"}
    yield "estimates", whole
    yield "estimates", {"last": "2h"}
    yield "estimates", {"key": "/page/1", "last": "2h", "joined": "true"}
    if has_days:
        yield "estimates", {"by": "day", "last": "14d"}
        yield "estimates", {"last": "7d"}
        yield "top", {"last": "7d"}
    yield "top", {"by": "hour", **hour}
    yield "top", whole
    yield "compare", {**hour, **last}
    yield "pair", {"key": "/page/1", "other_key": "/page/2", "last": "1h"}
    yield "keys", {"limit": "10000"}
    yield "completeness", {}


def ask_server(config: Path, end_ms: int, has_days: bool) -> None:
    """Start a server, ask it everything twice, and print the peak after each."""
    listens = f"127.0.0.1:{free_ports(1)[0]}"
    process = subprocess.Popen([*COMMAND, "serve", str(config), "--listen", listens], cwd=ROOT)
    try:
        url = f"http://{listens}/v1/pipelines/views"
        with httpx.Client(timeout=600) as client:
            while not is_ready(client, url):
                time.sleep(0.5)
            print(f"{'serve, ready':44} {resident(process.pid, 'VmHWM'):6} MB", flush=True)
            for path, params in [*requests(end_ms, has_days)] * 2:
                try:
                    reply = client.get(f"{url}/{path}", params=params)
                    said = f"{reply.status_code}, {len(reply.content)} bytes"
                except httpx.TransportError:
                    said = "ended by the server, which answers in two minutes or not at all"
                name = f"serve, {path} {' '.join(f'{key}={value}' for key, value in params.items())}"
                peak = resident(process.pid, "VmHWM")
                print(f"{name:90} {peak:6} MB  now {resident(process.pid)} MB, {said}", flush=True)
    finally:
        process.terminate()
        process.wait()


def is_ready(client: httpx.Client, url: str) -> bool:
    try:
        return bool(client.get(url).json()["ready"])
    except (httpx.HTTPError, KeyError):
        return False


@contextmanager
def on_topics(config: Path, folder: Path) -> Iterator[Path]:
    """The configuration of a pipeline whose topics hold what the file of another one does, on a broker of its own."""
    from kafka import KafkaProducer
    from support.kafka_cluster import shared_bootstrap
    from support.kafka_topics import make_topic

    from sfm_stream.transport.files.log_reader import LogReader
    from sfm_stream.units import ROLLUPS, SKETCHES

    with tempfile.TemporaryDirectory() as at, shared_bootstrap(Path(at)) as bootstrap:
        reader = LogReader(str(config.with_name("out.sqlite")))
        with KafkaProducer(bootstrap_servers=bootstrap, batch_size=MIB, linger_ms=5) as producer:
            for topic in (SKETCHES, ROLLUPS):
                name, copied = make_topic(bootstrap, f"views.{topic}"), 0
                for each in reader.read(topic):
                    producer.send(name, key=each.key, value=each.value, timestamp_ms=each.timestamp_ms, partition=0)
                    copied += 1
                producer.flush()
                print(f"{copied} records in topic {name}", flush=True)
        reader.close()
        text = config.read_text().split("[input]")
        kept = text[1][text[1].index("[event]") : text[1].index("[output]")]
        kept = "\n".join(line for line in kept.splitlines() if not line.startswith(("latest", "end")))
        (folder / "topics.toml").write_text(text[0] + CLUSTER.format(bootstrap=bootstrap) + kept)
        yield folder / "topics.toml"


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("keys", 1000), ("hours", 24), ("minutes", 1), ("buckets", 64), ("days", 0), ("cpu-s", 600)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--topics", action="store_true")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--only", action="append")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary) / "made"
        if not (config := folder / "app.toml").exists():
            facts = (folder, given.keys, given.days or given.hours, given.buckets)
            made = (served.make, facts) if given.days else (questions.make, (*facts, given.minutes, given.share))
            # In a process of its own: a new process is charged with what its parent has at the time.
            maker = multiprocessing.get_context("spawn").Process(target=made[0], args=made[1])
            maker.start()
            maker.join()
        end_ms = START_MS + (given.days * DAY_MS or given.hours * HOUR_MS)
        if not given.topics:
            ask_all(config, end_ms, bool(given.days), Path(temporary), given)
            return
        with on_topics(config, Path(temporary)) as of_topics:
            ask_all(of_topics, end_ms, bool(given.days), Path(temporary), given)


def ask_all(config: Path, end_ms: int, has_days: bool, folder: Path, given: argparse.Namespace) -> None:
    def is_asked(name: str) -> bool:
        return given.only is None or any(text in name for text in given.only)

    for name, command in commands(config, end_ms, has_days, folder):
        if is_asked(name):
            ask(name, command, given.cpu_s)
    if is_asked("serve"):
        ask_server(config, end_ms, has_days)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
