"""`sfm-stream serve` on a real broker: it copies the public topics, and answers as `estimate` does from them."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from kafka import KafkaAdminClient
from support.embedded_runs import asked, command
from support.kafka_runs import Run, Worker, page_views, wait_until, workers
from support.kafka_topics import make_topic
from support.patience import PATIENCE_S, until

from sfm_stream.answers import AnswerTable, PublishedAnswers, open_answers
from sfm_stream.config.config import load_config
from sfm_stream.serve import topic_source
from sfm_stream.serve.server import serving

pytestmark = pytest.mark.kafka
PROCESS = Path(__file__).with_name("serve_process.py")
QUESTIONS = [
    ("--by", "window"),
    ("--by", "week"),
    ("--by", "window", "--key", "p3"),
    ("--last", "6h"),  # events lie two hours before the tests began, and an hour may end while they run
]
TABLES: dict[str, Callable[[PublishedAnswers], AnswerTable]] = {
    "windows": lambda views: views.estimates(by="window"),
    "joined": lambda views: views.estimates(last="6h", joined=True),
    "top": lambda views: views.top(3, last="6h"),
}


class Server:
    """A process that serves a configuration, and a client of it."""

    def __init__(self, config: Path, *call: object) -> None:
        self.config, self.log = config, config.with_name("serve.log")
        started = call or ("-m", "sfm_stream.cli", "serve", config, "--listen", "127.0.0.1:0")
        with self.log.open("w") as log:
            self.process = subprocess.Popen([sys.executable, *map(str, started)], stdout=log, stderr=log)

    def client(self) -> httpx.Client:
        until(lambda: "answers at" in self.log.read_text() or self.process.poll() is not None, self.log.read_text)
        address = re.search(r"answers at (\S+)/", self.log.read_text())
        assert address, self.log.read_text()
        return httpx.Client(base_url=address[1], timeout=PATIENCE_S)


@contextmanager
def server_of(config: Path, *call: object):
    server = Server(config, *call)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait(PATIENCE_S)


def answers(client: httpx.Client, pipeline: str, question: tuple[str, ...]) -> list[object]:
    names = [name.removeprefix("--") for name in question[::2]]
    answer = client.get(f"/v1/pipelines/{pipeline}/estimates", params=dict(zip(names, question[1::2], strict=True)))
    assert answer.status_code == 200, answer.text
    return answer.json()["rows"]


def app_of(run: Run) -> Path:
    """Its configuration. It is written once: a worker may be reading it."""
    return run.folder / "app.toml"


def follows(client: httpx.Client, run: Run) -> bool:
    """Whether everything that is published is in the copy."""
    state = client.get(f"/v1/pipelines/{run.id}").json()
    ends = sum(read[1] >= 0 for name in ("sketches", "rollups") for read in run.read(name))
    return state["ready"] and state["copied"]["done"] == state["copied"]["wanted"] >= ends


def require_same(client: httpx.Client, run: Run) -> None:
    """Its answers are those of `estimate` from the topics."""
    until(lambda: follows(client, run), lambda: client.get(f"/v1/pipelines/{run.id}").text, 0.3)
    for question in [*QUESTIONS, *([("--by", "hour")] if is_rolled_up(run) else [])]:
        assert answers(client, run.id, question) == asked(app_of(run), *question), question
    require_same_tables(client, run)


def require_same_tables(client: httpx.Client, run: Run) -> None:
    """The Python client has the same tables and keys from the topics as from the server."""
    with open_answers(app_of(run)) as of_topics, open_answers(str(client.base_url), run.id) as of_server:
        assert list(of_topics.keys()) == list(of_server.keys()) != []
        assert of_topics.completeness() == of_server.completeness()
        for name, ask in TABLES.items():
            here, there = (ask(each).to_arrow() for each in (of_topics, of_server))
            assert here.equals(there), name
            assert here.num_rows > 0, name


@pytest.fixture(scope="module")
def run(kafka: str, tmp_path_factory) -> Run:
    """All events are counted and published; nothing is rolled up yet."""
    run = Run(kafka, tmp_path_factory.mktemp("serve"))
    views = page_views(1200, 100)
    run.produce(views)
    with working(run, ("ingest", "publish"), first=True) as started:
        wait_until(lambda: is_closed(run, views), 120, started)
    return run


@contextmanager
def working(run: Run, *roles: tuple[str, ...], first: bool = False):
    """A worker for each of these, at work in this block; they end well."""
    with workers() as started:
        for each in roles:
            started.append(Worker(app_of(run), *each, first=first and "ingest" in each))
            # Topics are there once the first one is at work.
            wait_until(lambda: "assigned" in started[-1].said(), 120, started)
        yield started
        for worker in started:
            assert worker.stop() == 0


def is_closed(run: Run, views) -> bool:
    last = {run.partition(view.page): view.arrival_ms for view in views}
    closed = {read[0]: max(read[4], 0) for read in read_or_none(run, "sketches") if read[2] == b""}
    return all(closed.get(partition, 0) > at_ms - 5 * 60_000 for partition, at_ms in last.items())


def is_rolled_up(run: Run) -> bool:
    return bool(read_or_none(run, "rollups"))


def read_or_none(run: Run, name: str):
    try:
        return run.read(name)
    except LookupError:
        return []


def cache_of(run: Run) -> Path:
    return run.folder / "serve-cache" / f"{run.id}.topics.sqlite"


def test_a_copy_is_made_across_kills_and_deletions_while_the_pipeline_goes_on(run: Run) -> None:
    cache = cache_of(run)
    for step in (3, 6):
        with server_of(app_of(run), PROCESS, app_of(run), step) as server:
            assert server.process.wait(PATIENCE_S) == -signal.SIGKILL
    with closing(sqlite3.connect(f"file:{cache}?mode=ro", uri=True)) as db:
        # What was committed stayed, seven records at a time, with how far it was read.
        (records,) = db.execute("SELECT count(*) FROM records").fetchone()
        assert 0 < records < sum(len(run.read(name)) for name in ("sketches", "rollups"))
        assert db.execute("SELECT count(*) FROM positions").fetchone()[0] > 0
    assert stat.S_IMODE(cache.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.parent.stat().st_mode) == 0o700
    with server_of(app_of(run)) as server, server.client() as client:
        require_same(client, run)
        before = client.get(f"/v1/pipelines/{run.id}/estimates", params={"by": "window"})
        # A second server of the same copy is refused, by name of the first.
        second = command("serve", app_of(run), "--listen", "127.0.0.1:0")
        assert (second.returncode, str(server.process.pid) in second.stderr) == (4, True)
        assert "serve.cache" in second.stderr
        sketches = len(run.read("sketches"))
        with working(run, ("ingest", "publish"), ("rollup",)) as started:
            # More windows close as time goes on; all of them are rolled up.
            wait_until(lambda: is_rolled_up(run) and len(run.read("sketches")) > sketches, 120, started)
        require_same(client, run)
        known = {"if-none-match": before.headers["etag"]}
        after = client.get(f"/v1/pipelines/{run.id}/estimates", params={"by": "window"}, headers=known)
        assert after.status_code == 200
        # Deleted while it is read and written, all of it and the file alone.
        for number, ends in enumerate([("", "-wal", "-shm"), ("",)], 1):
            for end in ends:
                cache.with_name(cache.name + end).unlink()
            until(lambda: server.log.read_text().count("is gone or damaged") == number, server.log.read_text, 0.1)
            require_same(client, run)
        server.process.terminate()
        assert server.process.wait(PATIENCE_S) == 0
    # In the copy is what is published, byte for byte, and of no other topic.
    with closing(sqlite3.connect(f"file:{cache}?mode=ro", uri=True)) as db:
        rows = db.execute("SELECT topic, partition, offset, key, value, timestamp_ms FROM records").fetchall()
    published = [
        (name, partition, offset, key, value, at_ms)
        for name in ("sketches", "rollups")
        for partition, offset, key, value, at_ms, _ in run.read(name)
    ]
    assert sorted(rows) == sorted(published)


def test_pages_show_what_is_in_the_copy(run: Run) -> None:
    with server_of(app_of(run)) as server, server.client() as client:
        until(lambda: follows(client, run), lambda: client.get(f"/v1/pipelines/{run.id}").text, 0.3)
        pages = {name: client.get(f"/p/{run.id}{name}") for name in ("", "/keys", "/key?key=/p0&by=window", "/worth")}
        assert {name: page.status_code for name, page in pages.items()} == dict.fromkeys(pages, 200)
        keys = {row["key"][0] for row in answers(client, run.id, ("--by", "window"))}
        assert keys == set(re.findall(r'<li><a href="[^"]+"><bdi class="key">([^<]+)<', pages["/keys"].text))
        key = min(keys)
        rows = answers(client, run.id, ("--key", key, "--by", "window"))
        shown = client.get(f"/p/{run.id}/key", params={"key": key, "by": "window"}).text
        assert len(rows) == len(re.findall(r'<td class="number">[^<]+</td><td class="number">', shown))
        assert "What is decided, and what is still open" in pages[""].text


def test_a_damaged_copy_is_made_anew(run: Run) -> None:
    with server_of(app_of(run)) as server, server.client() as client:
        require_same(client, run)
    cache = cache_of(run)
    with closing(sqlite3.connect(cache)) as db:
        db.execute("UPDATE records SET value = value || x'00'")
        db.commit()
    with server_of(app_of(run)) as server, server.client() as client:
        until(lambda: follows(client, run), every_s=0.3)
        answer = client.get(f"/v1/pipelines/{run.id}/estimates", params={"by": "window"})
        assert (answer.status_code, answer.json()["type"]) == (503, "/v1/docs#not-now")
        until(lambda: "is gone or damaged" in server.log.read_text(), server.log.read_text)
        require_same(client, run)


def test_topics_that_were_made_anew_are_copied_anew(kafka: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(topic_source, "_SAME_S", 0.5)
    run = Run(kafka, tmp_path, partitions=1)
    views = page_views(60, 20)
    run.produce(views)
    with serving([load_config(app_of(run))], "127.0.0.1:0") as server:
        client = httpx.Client(base_url=f"http://{server.host}:{server.port}", timeout=PATIENCE_S)
        with client:

            def state():
                return client.get(f"/v1/pipelines/{run.id}").json()

            # Nothing of it is there yet: it waits.
            until(lambda: "do not exist" in state()["problem"], state, 0.2)
            with working(run, ("ingest", "publish"), ("rollup",), first=True) as started:
                wait_until(lambda: is_closed(run, views) and is_rolled_up(run), 120, started)
            require_same(client, run)
            with KafkaAdminClient(bootstrap_servers=kafka) as admin:
                admin.delete_topics([f"{run.id}.sketches", f"{run.id}.rollups"])
                until(lambda: not {f"{run.id}.sketches", f"{run.id}.rollups"} & set(admin.list_topics()), every_s=0.2)
            for name in ("sketches", "rollups"):
                make_topic(kafka, f"{run.id}.{name}")
            until(lambda: state()["ready"] and state()["copied"] == {"done": 0, "wanted": 0}, state, 0.2)
            answer = client.get(f"/v1/pipelines/{run.id}/estimates", params={"by": "window"})
            assert (answer.status_code, answer.json()["type"]) == (404, "/v1/docs#nothing")


def test_without_a_cluster_it_waits_and_says_so(tmp_path: Path, kafka: str) -> None:
    run = Run(kafka, tmp_path)
    config = run.config("away.toml", bootstrap='["127.0.0.1:1"]')
    with server_of(config) as server, server.client() as client:
        until(lambda: client.get(f"/v1/pipelines/{run.id}").json()["problem"] not in ("", "starting"), every_s=0.2)
        answer = client.get(f"/v1/pipelines/{run.id}/estimates", params={"by": "window"})
        assert (answer.status_code, answer.json()["type"]) == (503, "/v1/docs#not-now")
        assert "127.0.0.1:1" in answer.json()["detail"]
        assert client.get("/ready").status_code == 503
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(PATIENCE_S) == 0
    assert os.listdir(tmp_path / "serve-cache")
