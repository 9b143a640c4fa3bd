"""Metrics and health of workers, over transports that do as they are told."""

import json
import logging

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from reference.memory_batch import MemoryBatch
from support.embedded_runs import START_MS, NoFlips
from support.rollup_runs import HOUR_MS, PIPELINE, QUARTER_MS, at, bits_of, marker, release

from sfm_stream import kernels
from sfm_stream.config.config import parse_config
from sfm_stream.errors import BrokerError, ConfigError, StateError
from sfm_stream.observe import monitor as module
from sfm_stream.observe.metrics import DEFINITIONS
from sfm_stream.observe.monitor import ASK_S, LOOK_S, Monitor, monitoring
from sfm_stream.observe.public_metrics import PublicMetrics
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.pipeline.rollup.coverage import Absence
from sfm_stream.types import Assigned, Commit, InputEnd, Record, Revoked, Step
from sfm_stream.units import FOREVER_MS, LONGEST_DAY_MS, SKETCHES
from sfm_stream.wire.keys import MARKER_KEY
from sfm_stream.workers.ingest import IngestWorker
from sfm_stream.workers.observed_transport import ObservedTransport
from sfm_stream.workers.outbox import OutboxWorker
from sfm_stream.workers.rollup import RollupWorker

TOPIC, MINUTE_MS = "views-in", 60_000
CONFIG = """
[pipeline]
id = "views"
[kafka]
bootstrap = ["localhost:1"]
topic = "views-in"
timestamps = "create_time"
[event]
key = "page"
item = "user"
time = "at"
[window]
size = "1m"
grace = "30s"
start = 2026-01-01T00:00:00Z
[sketch]
buckets = 64
levels = 16
[privacy]
epsilon = 4
keys = "presence_is_public"
max_epsilon_per_item_day = 1000000
[limits]
max_raw_bytes = 1048576
[metrics]
"""


class Cluster:
    """Transport and cluster in one: gives the events it is told to, and answers what it is asked."""

    def __init__(self, name="ingest"):
        self.name, self.partitions = name, 2
        self.turns, self.answers, self.committed = [], [], []
        self.positions, self.end, self.restored, self.asked, self.joined = {}, {}, 0, 0, True

    def poll(self):
        events = self.turns.pop(0) if self.turns else []
        for event in events:
            if isinstance(event, Assigned):
                self.positions[event.partition] = event.committed.offset if event.committed else 0
            elif not isinstance(event, Revoked | InputEnd):
                self.positions[event.partition] = event.next_offset
        return events

    def seek(self, partition, offset):
        self.positions[partition] = offset

    def commit(self, step):
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, Exception):
            raise answer
        self.committed += [step] if answer else []
        return answer

    def close(self): ...

    def position(self, partition):
        return self.positions[partition]

    def ends(self):
        self.asked += 1
        if isinstance(self.end, Exception):
            raise self.end
        return dict(self.end)


class Watched:
    """A worker as the monitor sees it, driven one turn at a time."""

    def __init__(self, cluster, build):
        self.name, self.transport = cluster.name, cluster
        self.observed = ObservedTransport(cluster, cluster.name)
        self.worker = build(self.observed)

    @property
    def joined(self):
        return self.transport.joined

    def turn(self, monitor, *events):
        self.transport.turns.append(list(events))
        self.worker.tick(lambda: False)
        monitor.beat(self.name)


@pytest.fixture
def clock(monkeypatch):
    """The time, to be moved on; every beat looks anew, and asks where `asks` is set."""

    class Clock:
        ms = START_MS

        def on(self, seconds=ASK_S):
            self.ms += round(seconds * 1000)

    time = Clock()
    monkeypatch.setattr(module, "now_ms", lambda: time.ms)
    monkeypatch.setattr(module, "monotonic_s", lambda: time.ms / 1000)
    return time


def parsed(tmp_path, metrics=""):
    return parse_config(CONFIG + metrics, tmp_path)


def ingesting(config):
    def build(observed):
        return IngestWorker(config, observed, TOPIC, START_MS + HOUR_MS, lambda partition: FOREVER_MS, NoFlips())

    return Watched(Cluster(), build)


@pytest.fixture
def ingest(tmp_path):
    return ingesting(parsed(tmp_path))


def monitor_of(*services, public=None):
    monitor = Monitor(TOPIC, 300.0, public)
    monitor.watch(services)
    return monitor


def events(first, *seconds, partition=0, page="home"):
    """Records that arrive so many seconds after the start, at their event time."""
    times = [START_MS + round(1000 * second) for second in seconds]
    values = [json.dumps({"page": page, "user": f"u{time}", "at": time}).encode() for time in times]
    return MemoryBatch(values, times, first, partition)


def scraped(monitor, name):
    found = {}
    for family in text_string_to_metric_families(generate_latest(monitor.operator.registry).decode()):
        for sample in family.samples:
            if sample.name == f"sfm_{name}":
                labels = [definition.labels for definition in DEFINITIONS if definition.name == sample.name]
                found[tuple(sample.labels[label] for label in labels[0])] = sample.value
    return found


def test_what_was_read_counted_and_dropped(ingest, clock):
    monitor = monitor_of(ingest)
    broken = MemoryBatch([b"{", b"{}"], [START_MS + 20_000] * 2, 3)
    ingest.turn(monitor, Assigned(0), events(0, 1, 2, 200_000), broken)
    assert scraped(monitor, "events_read_total") == {(TOPIC,): 5}
    assert scraped(monitor, "events_counted_total") == {(TOPIC,): 2}
    assert scraped(monitor, "events_dropped_total") == {
        (TOPIC, "malformed"): 1,
        (TOPIC, "time_missing"): 1,
        (TOPIC, "time_implausible"): 1,
    }
    assert scraped(monitor, "batches_read_total") == {("ingest",): 2}
    assert scraped(monitor, "loop_turns_total") == {("ingest",): 1}
    assert scraped(monitor, "kernel_info") == {("ingest", kernels.in_use()): 1}
    assert scraped(monitor, "last_turn_timestamp_seconds") == {("ingest",): clock.ms / 1000}


def test_open_windows_clock_and_what_is_held_back(ingest, clock):
    monitor = monitor_of(ingest)
    ingest.turn(monitor, Assigned(0), Assigned(1), events(0, 1, 2, 61, 70), events(0, 5, partition=1))
    clock.ms = START_MS + 100_000
    ingest.turn(monitor)
    assert scraped(monitor, "open_windows") == {("0",): 2, ("1",): 1}
    assert scraped(monitor, "open_keys") == {("0",): 1, ("1",): 1}
    assert scraped(monitor, "raw_bytes")[("0",)] > 0
    assert scraped(monitor, "raw_bytes_ratio")[("0",)] == scraped(monitor, "raw_bytes")[("0",)] / 2**20
    assert scraped(monitor, "clock_delay_seconds") == {("0",): 30.0, ("1",): 95.0}
    assert scraped(monitor, "closed_through_timestamp_seconds")[("0",)] == START_MS / 1000
    assert scraped(monitor, "hold_back_records") == {("ingest", "0"): 4, ("ingest", "1"): 1}
    assert scraped(monitor, "hold_back_seconds") == {("0",): 70.0, ("1",): 5.0}
    clock.on()
    ingest.turn(monitor, events(4, 91))  # closes the first window: replay begins at the record of second 61
    assert scraped(monitor, "releases_total") == {(): 1}
    assert scraped(monitor, "records_published_total") == {("ingest",): 2}
    assert scraped(monitor, "open_windows") == {("0",): 1, ("1",): 1}
    assert scraped(monitor, "closed_through_timestamp_seconds")[("0",)] == (START_MS + MINUTE_MS) / 1000
    assert scraped(monitor, "hold_back_records")[("ingest", "0")] == 3
    assert scraped(monitor, "hold_back_seconds")[("0",)] == 91 - 2


def test_what_is_expected_follows_from_window_grace_and_the_longest_span(ingest, clock, tmp_path):
    monitor = monitor_of(ingest)
    ingest.turn(monitor, Assigned(0))
    assert scraped(monitor, "close_expected_seconds") == {("0",): 90.0}
    assert scraped(monitor, "hold_back_expected_seconds") == {("0",): 90.0}
    with_days = CONFIG.replace("[limits]", '[[spans]]\nsize = "day"\nepsilon = 1\n[limits]')
    by_the_broker = with_days.replace('"create_time"', '"log_append_time"').replace(
        "[sketch]", 'clock_margin = "7s"\n[sketch]'
    )
    for text, margin in ((with_days, 0), (by_the_broker, 7)):
        days = ingesting(parse_config(text, tmp_path))
        monitor = monitor_of(days)
        days.turn(monitor, Assigned(0))
        assert scraped(monitor, "close_expected_seconds") == {("0",): 90.0 + margin}
        assert scraped(monitor, "hold_back_expected_seconds") == {("0",): LONGEST_DAY_MS / 1000 + 30 + margin}


def test_nothing_is_held_back_after_a_checkpoint_without_open_windows(ingest, clock):
    monitor = monitor_of(ingest)
    ingest.turn(monitor, Assigned(0), events(0, 1, 2, 200_000, 200_001))
    assert ingest.transport.committed, "two late windows are closed"
    ingest.worker.checkpoint()
    clock.on()
    ingest.turn(monitor)
    assert scraped(monitor, "hold_back_records") == {("ingest", "0"): 0}
    assert scraped(monitor, "hold_back_seconds") == {("0",): 0.0}


def test_a_restart_goes_on_with_what_was_committed(ingest, clock, tmp_path):
    monitor = monitor_of(ingest)
    ingest.turn(monitor, Assigned(0), events(0, 1, 61, 91))
    (commit,) = ingest.transport.committed[-1].commit
    clock.on()
    ingest.turn(monitor, Revoked(0), Assigned(0, commit))
    assert (commit.offset, ingest.transport.positions[0]) == (1, 1)
    assert scraped(monitor, "hold_back_records") == {("ingest", "0"): 0}
    clock.ms = START_MS + 91_000
    ingest.turn(monitor)
    assert scraped(monitor, "clock_delay_seconds") == {("0",): 90.0}
    clock.on()
    ingest.turn(monitor, events(1, 61, 91))
    assert scraped(monitor, "clock_delay_seconds") == {("0",): 5.0}
    assert scraped(monitor, "hold_back_records") == {("ingest", "0"): 2}


def test_series_of_a_partition_go_with_it(ingest, clock):
    monitor = monitor_of(ingest)
    ingest.transport.end = {0: 9, 1: 9}
    ingest.turn(monitor, Assigned(0), Assigned(1), events(0, 1), events(0, 1, partition=1))
    assert scraped(monitor, "assigned_partitions") == {("ingest",): 2}
    clock.on()
    ingest.transport.end = {1: 9}
    ingest.turn(monitor, Revoked(0))
    assert scraped(monitor, "assigned_partitions") == {("ingest",): 1}
    by_partition = [line for line in generate_latest(monitor.operator.registry).decode().splitlines() if 'n="' in line]
    assert len(by_partition) == 11
    assert all('partition="1"' in line for line in by_partition)
    clock.on()
    ingest.turn(monitor, Revoked(1))
    assert 'partition="' not in generate_latest(monitor.operator.registry).decode()


def test_lag_is_the_distance_to_the_end(ingest, clock):
    monitor = monitor_of(ingest)
    ingest.transport.end = {0: 10, 1: 5}
    ingest.turn(monitor, Assigned(0), Assigned(1), events(0, 1, 2, 3))
    ingest.transport.positions[1] = 5
    clock.on()
    ingest.turn(monitor)
    assert scraped(monitor, "position_lag_records") == {("ingest", "0"): 7, ("ingest", "1"): 0}
    clock.on(ASK_S - LOOK_S)
    ingest.turn(monitor, events(3, 4))
    assert scraped(monitor, "position_lag_records")[("ingest", "0")] == 7, "not asked again yet"
    clock.on(LOOK_S)
    ingest.turn(monitor)
    assert scraped(monitor, "position_lag_records")[("ingest", "0")] == 6
    assert ingest.transport.asked == 3


def test_an_end_that_was_reached_is_no_lag_though_a_control_record_is_behind_it(ingest, clock):
    monitor = monitor_of(ingest)
    ingest.transport.end = {0: 4}
    ingest.turn(monitor, Assigned(0), events(0, 1, 2, 3))
    assert scraped(monitor, "position_lag_records") == {("ingest", "0"): 1}
    asked = clock.ms
    clock.on()
    ingest.turn(monitor, InputEnd(0, False, asked - 1))
    assert scraped(monitor, "position_lag_records") == {("ingest", "0"): 1}, "an end of before it was asked"
    clock.on()
    ingest.turn(monitor, InputEnd(0, False, clock.ms - 1000))
    assert scraped(monitor, "position_lag_records") == {("ingest", "0"): 0}
    clock.on()
    ingest.transport.end = {0: 6}
    ingest.turn(monitor, InputEnd(0, False, clock.ms))
    assert scraped(monitor, "position_lag_records") == {("ingest", "0"): 3}, "more was appended since"


def test_a_cluster_that_does_not_answer_leaves_the_lag_unknown_and_the_worker_running(ingest, clock):
    monitor = monitor_of(ingest)
    ingest.transport.end = {0: 3}
    ingest.turn(monitor, Assigned(0), events(0, 1))
    assert scraped(monitor, "position_lag_records") == {("ingest", "0"): 2}
    ingest.transport.end = BrokerError("away")
    clock.on()
    ingest.turn(monitor)
    assert scraped(monitor, "position_lag_records") == {}
    assert scraped(monitor, "hold_back_records") != {}


def test_most_beats_do_nothing(ingest, clock):
    monitor = monitor_of(ingest)
    for _ in range(100):
        clock.on(0.001)
        ingest.turn(monitor)
    assert ingest.transport.asked == 1
    assert scraped(monitor, "loop_turns_total") == {("ingest",): 1}, "from the first look"
    clock.on(LOOK_S)
    ingest.turn(monitor)
    assert (ingest.transport.asked, scraped(monitor, "loop_turns_total")) == (1, {("ingest",): 101})


def test_a_scrape_asks_nobody(ingest, clock):
    monitor = monitor_of(ingest)
    ingest.turn(monitor, Assigned(0))
    asked = ingest.transport.asked
    for _ in range(3):
        generate_latest(monitor.operator.registry)
    assert ingest.transport.asked == asked


def test_transactions_by_outcome_and_restored_positions(ingest, clock):
    monitor = monitor_of(ingest)
    ingest.transport.answers = [False, True, StateError("unknown")]
    ingest.transport.restored = 2
    ingest.turn(monitor, Assigned(0), events(0, 1, 91))
    ingest.turn(monitor)
    with pytest.raises(StateError):
        ingest.turn(monitor, events(2, 200))
    clock.on()
    monitor.beat("ingest")
    assert scraped(monitor, "transactions_total") == {
        ("ingest", "committed"): 1,
        ("ingest", "not_committed"): 1,
        ("ingest", "unknown"): 1,
    }
    assert scraped(monitor, "positions_restored_total") == {("ingest",): 2}
    assert scraped(monitor, "records_published_total") == {("ingest",): 2}


def test_live_is_a_matter_of_turns(ingest, clock):
    monitor = monitor_of(ingest)
    clock.on(300)
    assert monitor.live() == []
    clock.on(1)
    assert monitor.live() == ["ingest: no turn for 301 s"]
    ingest.turn(monitor)
    assert monitor.live() == []
    publish = Watched(Cluster("publish"), lambda observed: OutboxWorker(PIPELINE, observed, 1 << 20))
    both = monitor_of(ingest, publish)
    clock.on(301)
    ingest.turn(both)
    assert both.live() == ["publish: no turn for 301 s"]


def test_ready_is_a_matter_of_the_group_and_not_of_partitions(ingest, clock):
    monitor = Monitor(TOPIC, 300.0)
    assert (monitor.live(), monitor.ready()) == ([], ["starting"])
    monitor.watch([ingest])
    ingest.transport.joined = False
    ingest.turn(monitor)
    assert monitor.ready() == ["ingest: not in its consumer group"]
    ingest.transport.joined = True
    ingest.turn(monitor)
    assert monitor.ready() == []
    assert scraped(monitor, "assigned_partitions") == {("ingest",): 0}


T0 = at("2026-01-01")


def sketches(first, *payloads):
    return MemoryBatch(payloads, [0] * len(payloads), first)


class NoHistory:
    def read(self, topic, partition=None, offset=0):
        return iter(())


def rollup_with(public):
    days = calendar("UTC", QUARTER_MS, 0)
    observer = public.published if public else None
    return Watched(
        Cluster("rollup"), lambda observed: RollupWorker(PIPELINE, days, observed, NoHistory(), 8 << 20, observer)
    )


def hour_of(number, *keys):
    """The payloads of one hour: a release of each key, and its close markers."""
    start = T0 + number * HOUR_MS
    quarters = [start + n * QUARTER_MS for n in range(4)]
    return [*(release(start, key) for key in keys), *(marker(quarter, quarter + QUARTER_MS) for quarter in quarters)]


def test_published_estimates_are_shown_with_what_was_published(clock):
    public = PublicMetrics(10, Absence(1))
    rollup = rollup_with(public)
    monitor = monitor_of(rollup, public=public)
    rollup.transport.answers = [False, False]
    rollup.turn(monitor, Assigned(0), sketches(0, *hour_of(0, "a", "b")))
    value = {key: public.registry.get_sample_value("sfm_estimate", {"key": key, "grain": "hour"}) for key in "ab"}
    assert value == {"a": None, "b": None}, "not committed, so not published"
    rollup.turn(monitor)
    value = {key: public.registry.get_sample_value("sfm_estimate", {"key": key, "grain": "hour"}) for key in "ab"}
    assert all(found is not None for found in value.values())
    clock.on()
    rollup.turn(monitor, Revoked(0))
    assert "key=" not in generate_latest(public.registry).decode()


def test_conflicts_and_duplicates_stay_counted_when_the_partition_goes(clock):
    rollup = rollup_with(None)
    monitor = monitor_of(rollup)
    once, other = release(T0, "a"), release(T0, "a", bits_of(5))
    rollup.turn(monitor, Assigned(0), sketches(0, once, once, other, other))
    assert (scraped(monitor, "duplicates_total"), scraped(monitor, "conflicts_total")) == ({(): 1}, {(): 2})
    clock.on()
    rollup.turn(monitor, Revoked(0), Assigned(0), sketches(0, once, once))
    assert (scraped(monitor, "duplicates_total"), scraped(monitor, "conflicts_total")) == ({(): 2}, {(): 2})


def test_no_key_or_item_is_in_an_operator_metric_or_a_line_of_the_log(ingest, clock, caplog):
    caplog.set_level(logging.DEBUG)
    rollup, monitor = rollup_with(None), Monitor(TOPIC, 300.0)
    monitor.watch([ingest, rollup])
    ingest.turn(
        monitor, Assigned(0), events(0, 1, 91, page="secretpage"), MemoryBatch([b'{"page":"secretpage"}'], [0], 2)
    )
    rollup.turn(monitor, Assigned(0), sketches(0, *hour_of(0, "secretpage")))
    said = generate_latest(monitor.operator.registry).decode() + caplog.text
    assert "partition 0 assigned" in said
    assert "secretpage" not in said
    assert "u17" not in said


def test_an_observed_transport_is_a_transport_and_changes_nothing():
    cluster = Cluster()
    observed = ObservedTransport(cluster, "w")
    batch = events(5, 1, 2)
    cluster.turns = [[Assigned(0, Commit(0, 5, b"")), batch, InputEnd(0, False, 7)]]
    assert observed.poll()[1] is batch
    assert observed.partitions == 2
    progress = observed.progress[0]
    assert (progress.committed, progress.position, progress.read_ms) == (5, 7, 7)
    step = Step((Record(SKETCHES, 0, MARKER_KEY, b"", 0),), (Commit(0, 6, b""),))
    assert observed.commit(step)
    assert (cluster.committed, observed.published, progress.committed) == ([step], 1, 6)
    cluster.answers = [False]
    assert not observed.commit(Step(commit=(Commit(0, 7, b""),)))
    assert progress.committed == 6
    observed.seek(0, 1)
    assert (cluster.positions[0], progress.position, progress.committed) == (1, 1, 6)


def test_listeners_follow_the_settings(tmp_path):
    with monitoring(parsed(tmp_path, 'operator = ""'), None) as monitor:
        assert monitor.public is None
    config = parsed(tmp_path, 'operator = "127.0.0.1:0"\npublic = "127.0.0.1:0"\nmax_public_keys = 3')
    with monitoring(config, None) as monitor:
        assert monitor.public is None, "for the roll-up alone"
    with monitoring(config, "", public=True) as monitor:
        assert monitor.public is not None


def test_an_address_that_is_taken_stops_the_start_and_leaves_nothing_open(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    with monitoring(parsed(tmp_path), "127.0.0.1:0"):
        taken = f"127.0.0.1:{caplog.records[-1].port}"
        config = parsed(tmp_path, f'operator = "{taken}"')
        with pytest.raises(ConfigError, match=r"metrics\.operator"), monitoring(config, None):
            pass


@pytest.mark.parametrize("address", ["9464", ":9464", "host:", "host:65536", "host:-1", "a b:1", "::1:80", 9464])
def test_addresses_are_checked(tmp_path, address):
    with pytest.raises(ConfigError, match=r"metrics\.operator: expected an address"):
        parsed(tmp_path, f"operator = {json.dumps(address)}")
