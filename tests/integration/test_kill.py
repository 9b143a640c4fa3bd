"""kill -9 at failpoints and at random bytes of the input: after the re-run every release exists once, and is right.

The coins are a tape on which nothing flips, so that a release shows its raw cells and "equals what an unkilled run
counts" means equal bytes. The points are drawn from a fixed seed.
"""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.configs_by_kernel import configs_by_kernel
from support.embedded_runs import HOUR_MS, IN_TIME, START_MS, payloads, releases, rollups, write_config
from support.forks import Forks

from sfm_stream.transport.files.released_borders import ReleasedBorders

WORKER = Path(__file__).with_name("kill_worker.py")
EVENTS = 6000
DECLARED = {"keys": "declared", "privacy": 'declared = ["p0", "p1", "p2", "never"]'}
PRESENCE = {"keys": "presence_is_public"}
# Chunks of one release each: a window is committed in several transactions.
CHUNKED = {"max_transaction_bytes": 1 << 16, "buckets": 8192, "levels": 48}
# Beside the quarters of an hour; the day has fewer cells. The last table of the configuration.
SPANS = {
    "limits": """
[[spans]]
size = "hour"
epsilon = 1
[[spans]]
size = "day"
epsilon = 1
buckets = 4096
levels = 24
"""
}
SETTINGS = {
    "declared": DECLARED | IN_TIME,
    "presence": PRESENCE | IN_TIME,
    "hours and a day, chunked": PRESENCE | CHUNKED | IN_TIME | SPANS,
    # Counted whole, all releases at the end: between configured borders, and between those of the data. The first holds
    # no whole day.
    "whole, hours": DECLARED | CHUNKED | {"end": "end = 2026-01-01T03:00:00Z"} | SPANS,
    "whole, borders of the data": PRESENCE | CHUNKED | {"start": None},
}


def make(folder: Path, **settings: object) -> Path:
    """Two and a half hours of three pages with disorder, late records and a page that is never seen.

    start None: no border is configured, and the lines are in no order at all.
    """
    rng = random.Random(7)
    folder.mkdir()
    lines = []
    for number in range(EVENTS):
        at = START_MS + number * (5 * HOUR_MS // 2) // EVENTS - rng.choice([0, 0, 0, 60_000, 1_200_000])
        event = {"page": f"p{rng.randrange(3)}", "user": f"u{rng.randrange(900)}", "at": max(at, START_MS)}
        lines.append(json.dumps(event) if rng.random() > 0.01 else "{broken")
    if settings.get("start", "") is None:
        rng.shuffle(lines)
    (folder / "in.jsonl").write_text("\n".join(lines) + "\n")
    config = write_config(folder, **settings)
    config.write_text(config.read_text().replace("start = None\n", ""))
    return config


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    made = Forks(WORKER)
    yield made
    made.close()


@pytest.fixture(scope="module")
def work(forks: Forks) -> Callable[..., int]:
    """A run in a process of its own, to the end or to its death. Its exit code."""

    def run(config: Path, point: str = "never", count: int = 0) -> int:
        done = forks.run(config, point, count)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.returncode

    return run


def newest_rollups(output: Path) -> dict[tuple[object, ...], object]:
    newest: dict[tuple[object, ...], object] = {}
    for record in rollups(output):
        place = (record.grain, record.window, record.key)
        known = newest.get(place)
        assert known is None or known.revision < record.revision or known == record
        newest[place] = record
    return newest


@pytest.fixture(scope="module", params=sorted(SETTINGS))
def unkilled(request, work, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param) / "whole"
    config = make(folder, **SETTINGS[request.param])
    assert work(config) == 0
    return SETTINGS[request.param], folder


def check(killed: Path, whole: Path) -> None:
    got, want = releases(killed / "out.sqlite"), releases(whole / "out.sqlite")
    ids = [release.release_id for release in got]
    assert len(ids) == len(set(ids)), "a release was published twice"
    assert {r.release_id: r for r in got} == {r.release_id: r for r in want}
    assert newest_rollups(killed / "out.sqlite") == newest_rollups(whole / "out.sqlite")
    borders = [ReleasedBorders(str(folder / "out.sqlite")).borders for folder in (killed, whole)]
    assert borders[0] == borders[1] != {}


@pytest.mark.parametrize("seed", range(3))
def test_kills_at_random_points_change_nothing(unkilled, work, tmp_path, seed):
    settings, whole = unkilled
    rng = random.Random(seed)
    config = make(tmp_path / "killed", **settings)
    size = (tmp_path / "killed" / "in.jsonl").stat().st_size
    deaths = 0
    for each in (configs_by_kernel(config) * 3)[:5]:  # what one kernel began the other goes on with
        point = rng.choice(["draw", "before-commit", "after-commit", "before-note", "bytes"])
        count = rng.randrange(1, size) if point == "bytes" else rng.randrange(1, 12)
        deaths += work(each, point, count) != 0
    assert deaths >= 2, "a test in which nothing dies says nothing"
    assert work(config) == 0
    check(tmp_path / "killed", whole)


@pytest.mark.parametrize("point", ["draw", "before-commit", "after-commit", "before-note"])
def test_a_kill_at_each_failpoint_in_turn_changes_nothing(unkilled, work, tmp_path, point):
    """The first, second, third .. transaction or draw of each fresh process is its last."""
    settings, whole = unkilled
    config = make(tmp_path / "killed", **settings)
    turns = zip(configs_by_kernel(config) * 2, (1, 2, 3, 5), strict=True)
    deaths = sum(work(each, point, count) != 0 for each, count in turns)
    assert deaths >= 2
    assert work(config) == 0
    check(tmp_path / "killed", whole)


def test_a_second_run_publishes_nothing(unkilled, work):
    _, whole = unkilled
    before = [payloads(whole / "out.sqlite", topic) for topic in ("sketches", "rollups")]
    assert work(whole / "app.toml") == 0
    assert [payloads(whole / "out.sqlite", topic) for topic in ("sketches", "rollups")] == before
