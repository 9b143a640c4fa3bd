"""On a real broker: what `budget` says of two epochs, and what `test` says of records before they are produced."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest
from reference.naive_budget import paid
from support.embedded_runs import here
from support.kafka_runs import MINUTE_MS, START_MS, Event, Run, cell, cells_of, closed_through, page_views, wait_until
from support.kafka_serving import serving
from support.patience import PATIENCE_S

from sfm_stream.readable import instant
from sfm_stream.wire.codec import CloseMarker, Release, decode
from sfm_stream.wire.keys import decode_key

pytestmark = pytest.mark.kafka
MINUTES = 8
BEGIN_MS = int(time.time()) // 600 * 600_000 - 10 * MINUTE_MS
"""Not long ago: windows of five seconds from here to now are closed once the input is read."""
LATE = [
    Event("p1", "nobody", BEGIN_MS + MINUTE_MS, BEGIN_MS + MINUTES * MINUTE_MS),
    Event("p2", "ahead", BEGIN_MS + 120 * MINUTE_MS, BEGIN_MS + MINUTES * MINUTE_MS),
]
"""Late for every span; and too far ahead."""


def events() -> list[Event]:
    """Some come late for their five seconds, and some of these count for their twenty."""
    shift_ms = BEGIN_MS - START_MS
    views = page_views(150, MINUTES, users=100_000, behind_ms=6_000)
    return [*(replace(e, at_ms=e.at_ms + shift_ms, arrival_ms=e.arrival_ms + shift_ms) for e in views), *LATE]


def spans(epsilon: float) -> str:
    return f'[[spans]]\nsize = "20s"\nepsilon = {epsilon}\ncount_share = 0.2'


def written(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat()


def count(run: Run, config: Path, epoch: int, through_ms: int) -> int:
    """Run an epoch until every partition is closed up to a time. Returns how far any is closed."""
    with serving(config, "ingest", "publish", first=True) as workers:

        def done() -> bool:
            reached = closed_through(run.read("sketches"), epoch)
            return workers.error is not None or (len(reached) == 2 and min(reached.values()) >= through_ms)

        workers.await_joined()
        wait_until(done, PATIENCE_S)
        assert workers.error is None, workers.error
    return max(closed_through(run.read("outbox"), epoch).values())


@pytest.fixture(scope="module")
def counted(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A pipeline of two epochs that has run. The second has other epsilons."""
    settings = {"size": "5s", "grace": "1s", "start": written(BEGIN_MS), "spans": spans(1)}
    run = Run(kafka, tmp_path_factory.mktemp("kit"), partitions=2, settings=settings)
    run.produce(events())
    reached_ms = count(run, run.config(), 1, BEGIN_MS + MINUTES * MINUTE_MS)
    begin_ms = -(-reached_ms // 20_000) * 20_000
    dearer = {"spans": spans(1.5), "privacy": 'epsilon = 0.5\nkeys = "presence_is_public"'}
    second = run.config("second.toml", epoch=2, start=written(begin_ms), **dearer)
    run.produce([Event(f"p{page}", "later", begin_ms + 1, begin_ms + 2) for page in range(8)])
    count(run, second, 2, begin_ms + 20_000)
    return run


def released(run: Run) -> list[Release | CloseMarker]:
    records = [decode(value or b"") for _, _, _, value, _, _ in run.read("sketches")]
    return [record for record in records if isinstance(record, Release | CloseMarker)]


def test_what_two_epochs_have_spent_is_the_sum_over_their_markers(counted: Run) -> None:
    epsilons = {
        (1, "5s"): Fraction(2), (1, "20s"): Fraction(1), (2, "5s"): Fraction("0.5"), (2, "20s"): Fraction("1.5"),
    }  # fmt: skip
    windows = paid([each for each in released(counted) if isinstance(each, CloseMarker)], epsilons)
    for config in ("app.toml", "second.toml"):
        done = here("budget", counted.folder / config, "--json")
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        said = {(each["epoch"], each["span"]): (each["windows"], each["epsilon"]) for each in document["spans"]}
        assert {of: spent[0] for of, spent in said.items()} == {
            of: sum((each.epoch, each.span) == of for each in windows) for of in epsilons
        }
        for of, epsilon in epsilons.items():
            assert said[of][1] == pytest.approx(float(epsilon), rel=1e-9)
        total = document["person"]["lost"][-1]
        assert total["epsilon"] == pytest.approx(float(sum(each.epsilon for each in windows)), rel=1e-9)
        assert [each["settings_of_configuration"] for each in document["spans"]].count(True) == 2


def test_records_count_where_they_were_said_to(counted: Run, tmp_path: Path) -> None:
    """Every record of the first epoch as a case: its windows hold the cells of exactly those that count there."""
    listed = events()
    cases = "partitions = 2\n" + "".join(
        f"[[cases]]\nname = \"{number}\"\ntext = '{event.value.decode()}'\narrival = {instant(event.arrival_ms)}\n"
        'dropped = "late"\n'
        for number, event in enumerate(listed)
    )
    (tmp_path / "cases.toml").write_text(cases)
    got = [
        case["got"]
        for case in json.loads(here("test", counted.config(), tmp_path / "cases.toml", "--json").stdout)["cases"]
    ]
    of_epoch = [each for each in released(counted) if isinstance(each, Release) and each.epoch == 1]
    expected: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for event, fate in zip(listed, got, strict=True):
        for span, start in fate.get("counted", {}).items():
            expected[span, start, fate["key"][0]].add(event.user)
    found = {
        (each.span, instant(each.window.start_ms), decode_key(each.key)[0]): len(cells_of(each)) for each in of_epoch
    }
    assert found.keys() == expected.keys()
    assert {case["dropped"] for case in got if "dropped" in case} == {"late", "future"}
    assert {tuple(case["counted"]) for case in got if "counted" in case} == {("5s", "20s"), ("20s",)}
    assert found == {place: len({cell(user) for user in users}) for place, users in expected.items()}
