"""The Kafka that other tests rely on: it answers, it knows transactions, and it survives the loss of a broker."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import kafka_cluster, kafka_nodes
from support.kafka_cluster import (
    Cluster,
    KafkaCluster,
    KafkaUnavailable,
    find_cluster,
    make_topic,
    produce,
    read_all,
    topic_name,
)
from support.patience import PATIENCE_S, until

TIME_MS = 1_767_225_600_000


def test_what_is_produced_is_read(kafka):
    topic = make_topic(kafka, topic_name(), 2)
    sent = [(b"k%d" % n, b"v%d" % n, TIME_MS + n, n % 2) for n in range(10)]
    places = produce(kafka, topic, sent, compression="gzip")
    assert places == [(n % 2, n // 2) for n in range(10)]
    expected = [(*place, *record[:3], []) for place, record in zip(places, sent, strict=True)]
    assert read_all(kafka, topic) == sorted(expected)


def test_aborted_records_are_seen_by_uncommitted_readers_only(kafka):
    topic = make_topic(kafka, topic_name())
    produce(kafka, topic, [(None, b"kept", TIME_MS, 0)], transactional_id=topic_name("kept"))
    produce(kafka, topic, [(None, b"dropped", TIME_MS, 0)], abort=True)
    assert [record[3] for record in read_all(kafka, topic)] == [b"kept"]
    assert [record[3] for record in read_all(kafka, topic, "read_uncommitted")] == [b"kept", b"dropped"]


def test_a_topic_is_not_made_by_asking_for_it(kafka):
    with pytest.raises(LookupError):
        read_all(kafka, topic_name("never"))


def test_producing_goes_on_without_one_of_three_brokers(kafka_three):
    bootstrap = kafka_three.bootstrap
    topic = make_topic(bootstrap, topic_name(), 3)
    sent = [(None, b"%d" % n, TIME_MS, n % 3) for n in range(6)]
    produce(bootstrap, topic, sent)
    kafka_three.kill(2)
    produce(bootstrap, topic, sent)
    kafka_three.restart(2)
    kafka_three.pause(3)
    kafka_three.resume(3)
    assert sorted(record[3] for record in read_all(bootstrap, topic)) == sorted(value for _, value, *_ in sent * 2)


ORPHANS = """
import os, signal, sys
from pathlib import Path
from support.kafka_cluster import KafkaCluster
cluster = KafkaCluster(Path(sys.argv[1]))
cluster.start()
print(cluster.guard.pid, cluster.processes[1].pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.kafka
def test_no_node_outlives_the_process_that_started_it(tmp_path):
    try:
        cluster = find_cluster(tmp_path / "unused")
        cluster.users.close()
    except KafkaUnavailable as problem:
        pytest.skip(str(problem))
    if not isinstance(cluster, KafkaCluster):
        pytest.skip("a container engine sees to that")
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    call = [sys.executable, "-c", ORPHANS, str(tmp_path / "cluster")]
    done = subprocess.run(call, env=env, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == -signal.SIGKILL, done.stderr
    until(lambda: not any(map(lives, map(int, done.stdout.split()))), lambda: "still there")
    assert not (tmp_path / "cluster" / "live").exists()


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


class NoNodes(Cluster):
    """A cluster that needs neither Java nor containers, and answers nothing."""

    def launch(self, node):
        """There is nothing to start."""

    def await_brokers(self):
        """Nothing will answer."""


def test_nobody_is_given_the_address_of_a_cluster_that_ends(tmp_path, monkeypatch):
    """Whoever waits for the claim goes on where its last holder is done: by then its files are gone."""
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)
    monkeypatch.setattr(kafka_cluster, "find_cluster", NoNodes)
    claimed, rmtree = [], shutil.rmtree

    def removing(path, **how):
        with (tmp_path / "kafka" / "users").open("a") as other:
            try:
                fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                claimed.append(False)
            else:
                claimed.append(True)
        rmtree(path, **how)

    for _ in range(2):
        with kafka_cluster.shared_bootstrap(tmp_path / "kafka") as bootstrap:
            assert (tmp_path / "kafka" / "live" / "bootstrap").read_text() == bootstrap
            with kafka_cluster.shared_bootstrap(tmp_path / "kafka") as same:
                assert same == bootstrap
            monkeypatch.setattr(kafka_nodes.shutil, "rmtree", removing)
        monkeypatch.setattr(kafka_nodes.shutil, "rmtree", rmtree)
        assert not (tmp_path / "kafka" / "live").exists()
    assert claimed == [False, False], "another process was let in before the files were gone"
