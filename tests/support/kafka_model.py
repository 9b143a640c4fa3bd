"""Pipelines on the model of Kafka: processes of real workers, one at a time, disturbed by a schedule.

Each process is a thread, and one baton says which of them runs: a run is decided by its Schedule alone. A process hands
the baton on after each turn of its worker, and now and then at a request to the cluster; there, too, the schedule lets
requests fail, get lost or come late, the process die, or stop for so long that others take its place.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kafka.errors as kafka_errors
import pytest
from support.fake_kafka import run_on
from support.fake_kafka_broker import FakeBroker
from support.kafka_model_process import MarkingCoins, Process, held
from support.kafka_runs import BUCKETS, LEVELS, MINUTE_MS, Event
from support.patience import PATIENCE_S
from support.span_windows import Windows, windows_of

from sfm_stream.composition import kafka as composition
from sfm_stream.composition import kafka_first_start as first_start
from sfm_stream.config.config import Config, parse_config
from sfm_stream.events.partitioner import murmur2_partition
from sfm_stream.transport.kafka import transport
from sfm_stream.transport.kafka.topic_changes import TopicAtStart
from sfm_stream.transport.kafka.topic_facts import TopicFacts
from sfm_stream.wire.keys import MARKER_KEY

SOURCE, PIPELINE = "in", "model"
START_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""
MARGIN_MS = 1_000
QUIET_TURNS = 1500


@dataclass(frozen=True)
class Timeline:
    """What is counted, and in which time.

    spans: the released ones, the base span first. busy_ms: about how long events come; the run begins in the middle.
    speed: of the clock on the wall; time-outs and sessions go by another one.
    """

    config: Config
    start_ms: int
    busy_ms: int
    grace_ms: int
    spans: tuple[str, ...] = ("1m",)
    zone: str = "UTC"
    speed: int = 1

    def windows(self, through_ms: int) -> dict[str, Windows]:
        """Span to its windows that lie wholly between the start and a border."""
        return {span: windows_of(span, self.zone, self.start_ms, through_ms) for span in self.spans}


@dataclass(frozen=True)
class Schedule:
    """seed: of all that is not said here, such as who is next. faults: of a kind of request, the how many-th of its
    kind, to what happens to it: error (it is not sent), unknown (its answer is lost), late (it arrives after the client
    gave up), crash, crash-after, or one of STALLS_S, before or (-after) behind it. events: turn to what an operator or
    the cluster does then. declared: the keys of DECLARED have a release in every window, and no others. pace: how much
    time passes in a turn, some 0.7 s by default. days: quarters of an hour, hours and a day are released, where a
    zone of half hours has one of 23.5 hours; else minutes alone.
    """

    seed: int = 0
    partitions: int = 1
    ingests: int = 1
    publishers: int = 1
    turns: int = 40
    pace: float = 1.0
    faults: Mapping[tuple[str, int], str] = field(default_factory=dict)
    events: Mapping[int, str] = field(default_factory=dict)
    declared: bool = False
    days: bool = False


class Violation(AssertionError):
    """What must never happen."""


class World:
    """A cluster with the topics of a pipeline, its input as time brings it, and the processes."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.line = (
            (DECLARED_DAYS if schedule.days else DECLARED_MINUTES)
            if schedule.declared
            else (DAYS if schedule.days else MINUTES)
        )
        self.config = self.line.config
        self.rng = random.Random(schedule.seed)
        self.cluster = _Timed(self)
        self.coins = MarkingCoins(random.Random(schedule.seed + 1))
        for topic in (SOURCE, *(f"{PIPELINE}.{name}" for name in ("outbox", "ledger", "sketches"))):
            self.cluster.create(topic, schedule.partitions)
        self.events = events_of(self.rng, self.line)
        self.produced = 0
        self.baton = held()
        self.running: Process | None = None
        self.started = 0
        self.processes: list[Process] = []
        self.late: list[Callable[[], Any]] = []
        self.seen: Counter[str] = Counter()
        self.suffered: Counter[str] = Counter()
        self.violation: BaseException | None = None
        self.quiet = self.stuck = False
        self.restless = 0.1
        self.feed()

    # What the schedule decides

    def fault(self, name: str) -> str:
        if self.quiet:
            return ""
        self.seen[name] += 1
        return self.schedule.faults.get((name, self.seen[name]), "")

    def background(self) -> None:
        """What brokers and the threads of clients do meanwhile: a step of it, or none."""
        rng, cluster = self.rng, self.cluster
        if cluster.markers and rng.random() < 0.5:
            cluster.markers.pop(rng.randrange(len(cluster.markers)))()
        if cluster.members and rng.random() < 0.3:
            rng.choice(cluster.members).network()
        if self.late and rng.random() < 0.3:
            self.suffered["arrived late"] += 1
            with suppress(kafka_errors.KafkaError):
                self.late.pop(rng.randrange(len(self.late)))()

    def feed(self) -> None:
        """Every event is in the log when it arrives."""
        now, events = self.cluster.now_ms(), self.events
        while self.produced < len(events) and events[self.produced].arrival_ms <= now:
            event = events[self.produced]
            key, self.produced = event.page.encode(), self.produced + 1
            log = self.cluster.topics[SOURCE][murmur2_partition(key, self.schedule.partitions)]
            log.append([(key, event.value, event.arrival_ms)])

    # A run

    def run(self) -> None:
        """Through the schedule, then undisturbed until all is published. Raises Violation."""
        STAGE.world = self
        try:
            for turn in range(self.schedule.turns):
                self._event(self.schedule.events.get(turn, ""))
                self._staff()
                self._turn()
                self.cluster.advance(self.schedule.pace * self.rng.choice((0.05, 0.2, 0.5, 2.0)))
            self._drain()
        finally:
            for process in self.processes if not self.stuck else []:
                process.dead = True
                while not process.ended:
                    self._give(process)
                process.thread.join()

    def _give(self, process: Process) -> None:
        """The baton, until it comes back."""
        process.baton.release()
        if not self.baton.acquire(timeout=PATIENCE_S):
            self.stuck = True
            raise RuntimeError(f"process {process.number} waits for something that is not of this model")

    def _turn(self) -> None:
        for process in self.processes:
            process.stalled = max(0, process.stalled - 1)
        able = [process for process in self.processes if not process.stalled]
        if able:
            self._give(self.rng.choice(able))
        self.processes = [process for process in self.processes if not process.ended]
        if self.violation is not None:
            raise Violation(f"{type(self.violation).__name__}: {self.violation}") from self.violation

    def _staff(self) -> None:
        """Start again what has ended, at once or later."""
        wanted = {"ingest": self.schedule.ingests, "publish": self.schedule.publishers}
        for role, count in wanted.items():
            if sum(process.role == role for process in self.processes) < count and (
                self.quiet or self.rng.random() < 0.5
            ):
                self.processes.append(Process(self, role))

    def _event(self, name: str) -> None:
        groups = list(self.cluster.groups.values())
        if name in ("forget", "move"):
            for group in groups:
                if name == "forget":
                    group.offsets.clear()
                for place in group.offsets:
                    moved = {"offset": self.rng.randrange(40), "metadata": "moved"}
                    group.offsets[place] = group.offsets[place]._replace(**moved)
        elif name == "join":
            roles = ("ingest", "publish") if self.schedule.publishers else ("ingest",)
            self.processes.append(Process(self, self.rng.choice(roles)))
        elif name == "leave" and self.processes:
            self.rng.choice(self.processes).leaving = True
        elif name == "rush":
            self.cluster.advance(70.0)
        elif name.startswith("hold"):
            # A replica that died is fenced after 9 s; one that is slow counts as in sync for 30 s.
            logs = [*self.cluster.topics[SOURCE]] if name == "hold input" else self.cluster.logs()
            for log in self.rng.sample(logs, self.rng.randint(1, len(logs))):
                log.hold(self.cluster.monotonic_s() + self.rng.choice((2.0, 9.0, 30.0)))

    def _drain(self) -> None:
        cluster = self.cluster
        self.quiet, self.restless = True, 0.0
        for log in cluster.logs():
            log.held = None
        line = self.line
        cluster.advance(max(0.0, (self.events[-1].arrival_ms + MINUTE_MS - cluster.now_ms()) / 1000 / line.speed))
        cluster.wall_ms = cluster.now_ms() + line.speed * MINUTE_MS + line.grace_ms
        for process in self.processes:
            process.stalled = 0
        for turn in range(QUIET_TURNS):
            self._staff()
            self._turn()
            cluster.advance(0.2)
            if turn % 8 == 7 and self._drained():
                return
        raise Violation("not everything is published, long after the last disturbance")

    @property
    def through_ms(self) -> int:
        """Where windows are closed by time alone at the end of the run: no longer window ends later."""
        return self.cluster.now_ms() - MARGIN_MS - self.line.grace_ms - 1

    def _drained(self) -> bool:
        windows = sum(map(len, self.line.windows(self.through_ms).values()))
        outbox, public = (self.cluster.topics[f"{PIPELINE}.{name}"] for name in ("outbox", "sketches"))
        return all(
            sum(entry.key == MARKER_KEY for entry in log.values(committed=True)) >= windows
            for log in (public if STAGE.outbox_is_public else [*outbox, *public])
        )


class _Timed(FakeBroker):
    """Time brings events. It begins in the middle of them."""

    def __init__(self, world: World) -> None:
        super().__init__(world.line.start_ms + world.line.busy_ms // 2)
        self._world, self._begun_s = world, self.clock_s

    def now_ms(self) -> int:
        if self.wall_ms is not None:
            return self.wall_ms
        return int((self._begun_s + (self.clock_s - self._begun_s) * self._world.line.speed) * 1000)

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        self._world.feed()


def events_of(rng: random.Random, line: Timeline, pages: int = 5, users: int = 30, count: int = 60) -> list[Event]:
    """In order of arrival; some late, some too late for their window, of which some are not too late for the day."""
    found, arrival = [], line.start_ms
    for _ in range(count):
        arrival += rng.randrange(1, 2 * line.busy_ms // count)
        at = max(line.start_ms, arrival - line.speed * rng.choice((0, 0, 500, 20_000, 80_000, 200_000)))
        found.append(Event(f"p{rng.randrange(pages)}", f"u{rng.randrange(users)}", at, arrival))
    return found


DECLARED = ["p0", "p1", "p2", "p3", "silent"]
"""All pages but one, and a key that has no event."""
CONFIG = f"""
[pipeline]
id = "{PIPELINE}"
[kafka]
bootstrap = ["model"]
topic = "{SOURCE}"
timestamps = "create_time"
[event]
key = "page"
item = "user"
time = "at"
[window]
size = "1m"
grace = "30s"
start = 2026-01-01T00:00:00Z
clock_margin = "1s"
[sketch]
buckets = {BUCKETS}
levels = {LEVELS}
[privacy]
epsilon = 2
count_share = 0
keys = "presence_is_public"
max_epsilon_per_item_day = 1000000
"""


def _configuration(text: str, transaction_bytes: int = 700) -> Config:
    config = parse_config(text, Path("."))
    limits = config.limits.model_copy(update={"max_transaction_bytes": transaction_bytes})
    return replace(config, settings=config.settings.model_copy(update={"limits": limits}))


CONFIGURATION = _configuration(CONFIG)
"""Chunks of two or three releases."""
DECLARING = _configuration(CONFIG.replace('"presence_is_public"', f'"declared"\ndeclared = {DECLARED}'))
MINUTES = Timeline(CONFIGURATION, START_MS, 5 * MINUTE_MS, 30_000)
DECLARED_MINUTES = replace(MINUTES, config=DECLARING)
BUCKETS_OF = {"hour": BUCKETS // 2}
"""Of released spans that have others than those of [sketch]."""
LORD_HOWE, SHORT_DAY_MS = "Australia/Lord_Howe", 1_759_584_600_000
"""Its 5 October 2025 begins at 13:30 UTC of the day before and has 23.5 hours."""
DAYS_CONFIG = (
    CONFIG.replace(
        'size = "1m"\ngrace = "30s"\nstart = 2026-01-01T00:00:00Z',
        'size = "15m"\ngrace = "150m"\nstart = 2025-10-04T13:00:00Z',
    )
    + f"""
[rollup]
zone = "{LORD_HOWE}"
[[spans]]
size = "hour"
epsilon = 1
buckets = {BUCKETS_OF["hour"]}
[[spans]]
size = "day"
epsilon = 1
count_share = 0.2
"""
)
DAYS = Timeline(
    config=_configuration(DAYS_CONFIG, 2000),
    start_ms=SHORT_DAY_MS - 30 * MINUTE_MS,
    busy_ms=26 * 60 * MINUTE_MS,
    grace_ms=150 * MINUTE_MS,
    spans=("15m", "hour", "day"),
    zone=LORD_HOWE,
    speed=300,
)
DECLARED_DAYS = replace(
    DAYS, config=_configuration(DAYS_CONFIG.replace('"presence_is_public"', f'"declared"\ndeclared = {DECLARED}'), 2000)
)


class _Stage:
    """The world that runs now; patched into the package once for many worlds."""

    world: World
    outbox_is_public = False

    def now_ms(self) -> int:
        return self.world.cluster.now_ms()

    def monotonic_s(self) -> float:
        return self.world.cluster.monotonic_s()

    def process(self) -> Process:
        assert self.world.running is not None
        return self.world.running

    def at_start(self) -> dict[str, TopicAtStart]:
        facts = TopicFacts("of the model", "", self.world.schedule.partitions, 0, {})
        return defaultdict(lambda: TopicAtStart(facts))

    def set(self, patch: pytest.MonkeyPatch) -> None:
        run_on(self, patch)
        patch.setattr(composition, "cluster_of", lambda config: self.process().kafka)
        patch.setattr(composition, "prepare", lambda config, cluster, **wanted: (self.at_start(), UNWATCHED))
        patch.setattr(first_start, "Event", lambda: SimpleNamespace(wait=lambda seconds: self.process().wait(seconds)))
        patch.setattr(transport, "os", SimpleNamespace(getpid=lambda: self.process().number))


UNWATCHED = SimpleNamespace(tick=lambda: None, explaining=nullcontext)
STAGE = _Stage()
