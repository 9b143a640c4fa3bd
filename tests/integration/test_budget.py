"""`sfm-stream budget` on pipelines on files that have run: against an oracle that pays for each window, and by hand."""

from __future__ import annotations

import gc
import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from reference.naive_budget import always, paid, periods, some_person
from support.embedded_runs import (
    HOUR_MS,
    IN_TIME,
    START_MS,
    here,
    markers,
    releases,
    run_here,
    write_config,
    write_events,
)

from sfm_stream.answers import spent as spent_module
from sfm_stream.answers.person_loss import Activity, losses
from sfm_stream.answers.spent import spent
from sfm_stream.composition.published import published
from sfm_stream.config.config import load_config
from sfm_stream.privacy.epsilon import epsilon_of
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import StoredRecord
from sfm_stream.units import FOREVER_MS
from sfm_stream.wire.codec import CloseMarker, Release, decode

DAYS = 9
SPANS = '[[spans]]\nsize = "day"\nepsilon = 1.5\n[[spans]]\nsize = "week"\nepsilon = 2'
ZONE = "America/New_York"
"""Its clocks are not changed in January; the hours of UTC begin with its own."""


def events(first_hour: int, hours: int, step: int = 1) -> list[dict[str, object]]:
    at = [START_MS + hour * HOUR_MS for hour in range(first_hour, first_hour + hours, step)]
    return [{"page": "p", "user": number, "at": at_ms} for number, at_ms in enumerate(at)]


def budget(config: Path, *options: object) -> Any:
    done = here("budget", config, *map(str, options), "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def lost(config: Path, *options: object) -> dict[str, float]:
    return {each["in"]: each["epsilon"] for each in budget(config, *options)["person"]["lost"]}


@pytest.fixture(scope="module")
def two_epochs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(the configuration of the first epoch, that of the second): hours, days and weeks, then dearer hours and days.

    The first ends inside a day of the zone, and has no release in most windows. Two items of a day are released.
    """
    folder = tmp_path_factory.mktemp("two")
    write_events(folder / "in.jsonl", events(0, 100, 10))
    write_events(folder / "later.jsonl", events(100, 24 * DAYS - 100))
    first = write_config(
        folder, size="1h", epsilon=0.5, zone=ZONE, limits=SPANS, end="end = 2026-01-05T04:00:00Z", keys="selected",
        privacy="epsilon_selection = 0.25\ndelta_selection = 0.9",
    )  # fmt: skip
    second = write_config(
        folder, "later.toml", size="1h", epsilon=0.75, zone=ZONE, limits=SPANS.replace("1.5", "3"), epoch=2,
        input="later.jsonl", start="2026-01-05T04:00:00Z", end="end = 2026-01-10T00:00:00Z",
    )  # fmt: skip
    run_here(first)
    run_here(second)
    return first, second


EPSILONS = {
    (1, "1h"): Fraction("0.75"), (1, "day"): Fraction("1.75"), (1, "week"): Fraction("2.25"),
    (2, "1h"): Fraction("0.75"), (2, "day"): Fraction(3), (2, "week"): Fraction(2),
}  # fmt: skip


def test_every_window_is_paid_for_once_whatever_was_withheld(two_epochs):
    """By hand, and from every marker: 100 hours and 4 days, then 116 hours and 4 days; no week of either is whole."""
    document = budget(two_epochs[0])
    spans = {(each["epoch"], each["span"]): each["windows"] for each in document["spans"]}
    assert spans == {(1, "1h"): 100, (1, "day"): 3, (2, "1h"): 116, (2, "day"): 4}
    every = markers(two_epochs[0].with_name("out.sqlite"))
    assert len(every) == sum(spans.values())
    of_first = {release.window for release in releases(two_epochs[0].with_name("out.sqlite")) if release.epoch == 1}
    assert len(of_first) <= 13, "every window has a release: the test shows less than it says"


def test_no_marker_is_held(two_epochs, monkeypatch):
    """Of topics every marker is read: half a million for a year of minutes."""
    expected, held = budget(two_epochs[0]), []
    read = spent_module.close_markers

    def there() -> int:
        return sum(isinstance(each, CloseMarker) for each in gc.get_objects())

    def every_one_often(*asked: Any) -> Iterator[CloseMarker]:
        before, given = there(), 0
        for marker in read(*asked):
            yield from (replace(marker) for _ in range(20))
            given += 20
        assert given > 100
        held.append(there() - before)

    monkeypatch.setattr(spent_module, "close_markers", every_one_often)
    config = load_config(two_epochs[0])
    with published(config) as reader:
        found = spent(reader, config)
    assert len(held) == 1
    assert held[0] <= 3
    assert [(each.epoch, each.name, each.windows) for each in found] == [
        (each["epoch"], each["span"], each["windows"]) for each in expected["spans"]
    ]


@pytest.mark.parametrize("which", [0, 1])
def test_an_item_that_is_always_active_has_lost_all_of_it(two_epochs, which):
    """The figures of each epoch: of its own settings where it is asked with them, of its releases where it is not."""
    epsilons = dict(EPSILONS)
    if which:  # the second configuration selects no keys, and does not know what a selection cost
        epsilons |= {of: price - Fraction("0.25") for of, price in EPSILONS.items() if of[0] == 1}
    else:
        epsilons |= {of: price + Fraction("0.25") for of, price in EPSILONS.items() if of[0] == 2}
    windows = paid(markers(two_epochs[0].with_name("out.sqlite")), epsilons)
    got = lost(two_epochs[which])
    for period, times in periods(windows, ZONE).items():
        assert got[period] == pytest.approx(float(max(always(windows, *time) for time in times)), rel=1e-12)
    assert got["so far"] == pytest.approx(float(sum(each.epsilon for each in windows)), rel=1e-12)


@pytest.mark.parametrize(("a_day", "days"), [(1, 7), (3, 7), (24, 5), (2, 2), (1, 1)])
def test_no_person_of_this_activity_loses_more(two_epochs, a_day, days):
    """Persons at random, each of whom keeps to the activity, in every day, week and month, and in all."""
    config = load_config(two_epochs[0])
    with published(config) as reader:
        spans = spent(reader, config)
    said = {each.period: each.epsilon for each in losses(spans, Activity(a_day, days), config.calendar)}
    epsilons = {of: price + Fraction("0.25" if of[0] == 2 else 0) for of, price in EPSILONS.items()}
    windows = paid(markers(two_epochs[0].with_name("out.sqlite")), epsilons)
    most = dict.fromkeys(said, Fraction(0))
    for seed in range(20):
        active = some_person(random.Random(seed), windows, "1h", ZONE, a_day, days)
        for period, times in periods(windows, ZONE).items():
            most[period] = max([most[period], *(always(active, *time) for time in times)])
        most["so far"] = max(most["so far"], sum((each.epsilon for each in active), Fraction(0)))
    for period, epsilon in said.items():
        assert most[period] <= Fraction(epsilon)
        # Not far below either: on the day of the change of epochs both are taken to have the whole activity.
        assert most[period] >= Fraction(epsilon) * Fraction(2, 5)


def test_by_hand(tmp_path):
    """Three days of hours of epsilon 0.5 and days of 1, a person in two hours of two days a week, with three keys."""
    write_events(tmp_path / "in.jsonl", events(0, 72))
    days = '[[spans]]\nsize = "day"\nepsilon = 1'
    config = write_config(tmp_path, size="1h", epsilon=0.5, limits=days, end="end = 2026-01-04T00:00:00Z")
    run_here(config)
    document = budget(config)
    assert [(each["windows"], each["epsilon"], each["delta"]) for each in document["spans"]] == [
        (72, 0.5, 0),
        (3, 1, 0),
    ]
    assert document["allowed_a_day"] == lost(config)["day"] == 24 * 0.5 + 1
    assert lost(config)["so far"] == lost(config)["week"] == lost(config)["month"] == 3 * (24 * 0.5 + 1)
    of_person = lost(config, "--active", 2, "--days", 2, "--keys-per-window", 3)
    assert of_person["day"] == 3 * (2 * 0.5 + 1)
    assert of_person["week"] == of_person["so far"] == 2 * of_person["day"]
    assert all("presence_is_public" in note for note in document["notes"])


def test_delta_is_added_as_epsilon_is(two_epochs):
    document = budget(two_epochs[0])
    assert {each["delta"] for each in document["spans"]} == {0.9}
    assert document["person"]["lost"][-1]["delta"] == pytest.approx((100 + 3 + 116 + 4) * 0.9, rel=1e-12)


def test_of_an_epoch_with_other_settings_the_releases_say_what_they_cost(two_epochs):
    (of_hours,) = {
        release.sketch.flip_threshold
        for release in releases(two_epochs[0].with_name("out.sqlite"))
        if (release.epoch, release.span) == (2, "1h")
    }
    document = budget(two_epochs[0])
    (hours,) = (each for each in document["spans"] if (each["epoch"], each["span"]) == (2, "1h"))
    assert hours["settings_of_configuration"] is False
    assert hours["epsilon_bits"] == epsilon_of(of_hours) == pytest.approx(0.75 * 0.9, rel=1e-12)
    assert hours["epsilon_count"] == 0.075
    note = document["notes"][-1]
    assert note.startswith("epoch 2 had other settings")
    assert "taken to be 0.25" in note
    assert "not counted" in budget(two_epochs[1])["notes"][-1]


def test_what_is_in_no_record_is_not_guessed(tmp_path):
    """Of an epoch that withheld everything and had other settings nothing says what it cost."""
    write_events(tmp_path / "in.jsonl", events(0, 5))
    selected = {"keys": "selected", "privacy": "epsilon_selection = 0.25\ndelta_selection = 1e-14"}
    config = write_config(tmp_path, size="1h", **selected)
    run_here(config)
    assert releases(tmp_path / "out.sqlite") == []
    assert lost(config)["so far"] == 5 * 4.25
    other = write_config(tmp_path, "other.toml", size="1h", epsilon=1, **selected)
    document = budget(other)
    assert (document["spans"][0]["epsilon"], document["spans"][0]["windows"]) == (None, 5)
    assert {each["epsilon"] for each in document["person"]["lost"]} == {None}
    assert any("Ask with the configuration of that epoch" in note for note in document["notes"])
    done = here("budget", other)
    assert done.returncode == 0
    assert done.stdout.count("not known") == 5
    assert "note: epoch 1, 1h: what it costs is not known" in done.stderr


def test_a_release_is_found_at_the_beginning_where_the_end_was_quiet(tmp_path):
    write_events(tmp_path / "in.jsonl", [*events(0, 1), {"page": "p", "at": START_MS + 50 * HOUR_MS}])
    run_here(write_config(tmp_path))
    assert len(markers(tmp_path / "out.sqlite")) == 201
    (span,) = budget(write_config(tmp_path, "other.toml", epsilon=1))["spans"]
    assert span["epsilon"] == pytest.approx(4, rel=1e-12)


def test_a_pipeline_of_version_1_has_its_length_for_a_name(tmp_path):
    write_events(tmp_path / "in.jsonl", events(0, 3))
    config = write_config(tmp_path, **IN_TIME)
    config.write_text(config.read_text().replace("epsilon = 4", "epsilon = 4\ncount_share = 0"))
    run_here(config)
    (span,) = budget(config)["spans"]
    assert (span["span"], span["windows"], span["epsilon"]) == ("15m", 9, 4)
    assert span["settings_of_configuration"] is True


def test_the_tables_say_what_json_says(two_epochs):
    done = here("budget", two_epochs[0], "--active", 3, "--days", 5, "--keys-per-window", 2)
    document = budget(two_epochs[0], "--active", 3, "--days", 5, "--keys-per-window", 2)
    rows = [re.split(r"\s{2,}", line.strip()) for line in done.stdout.splitlines()]
    shown = {row[0]: float(row[-2]) for row in rows if row[0] in ("a day", "a week", "a month", "so far")}
    told = {each["in"]: each["epsilon"] for each in document["person"]["lost"]}
    assert list(shown.values()) == pytest.approx(list(told.values()), rel=1e-5)
    assert all(value >= exact for value, exact in zip(shown.values(), told.values(), strict=True))
    assert "in 3 of the shortest windows a day, 5 days a week, under 2 keys in each, has lost at most" in done.stdout
    assert "Basic composition" in done.stdout


class _Stopped:
    """A TopicReader of what was published until a worker was killed in the middle of a window: its marker is missing.

    until_ms: the end of the last window that is decided. releasing: the span and the end of the one that is not.
    """

    def __init__(self, reader: TopicReader, until_ms: int, releasing: tuple[str, int]) -> None:
        self._reader, self._until_ms, self._releasing = reader, until_ms, releasing

    def markers(self, topic: str, since_ms: int = 0, until_ms: int = FOREVER_MS) -> Iterator[StoredRecord]:
        yield from (each for each in self._reader.look_up(topic, keys={b""}) if each.timestamp_ms <= self._until_ms)

    def look_up(self, topic: str, since_ms: int = 0, until_ms: int = FOREVER_MS) -> Iterator[StoredRecord]:
        for stored in self._reader.look_up(topic, since_ms, until_ms):
            release = decode(stored.value)
            if isinstance(release, Release) and (
                stored.timestamp_ms <= self._until_ms or (release.span, release.window.end_ms) == self._releasing
            ):
                yield stored


@pytest.mark.parametrize(
    ("hours", "releasing", "windows"),
    [
        pytest.param(0, ("1h", 1), {"1h": 1}, id="the first window of all"),
        pytest.param(5, ("1h", 6), {"1h": 6}, id="the next one of the finest span"),
        pytest.param(30, ("day", 24), {"1h": 30, "day": 1}, id="the first one of a coarser span"),
        pytest.param(60, ("day", 48), {"1h": 60, "day": 2}, id="the next one of a coarser span"),
    ],
)
def test_a_window_that_is_being_released_is_paid_for(tmp_path, hours, releasing, windows):
    write_events(tmp_path / "in.jsonl", events(0, 72))
    days = '[[spans]]\nsize = "day"\nepsilon = 1'
    config = load_config(write_config(tmp_path, size="1h", epsilon=0.5, limits=days, end="end = 2026-01-04T00:00:00Z"))
    run_here(tmp_path / "app.toml")
    span, end = releasing
    with published(config) as reader:
        stopped: Any = _Stopped(reader, START_MS + hours * HOUR_MS, (span, START_MS + end * HOUR_MS))
        if span == "day":  # its marker comes after those of the hours
            every = stopped.markers
            stopped.markers = lambda *asked: (
                each for each in every(*asked) if (decode(each.value).span, each.timestamp_ms) != stopped._releasing
            )
        found = spent(stopped, config)
    assert {each.name: each.windows for each in found} == windows
    assert {each.name: float(each.price.epsilon) for each in found if each.price} == pytest.approx(
        {name: {"1h": 0.5, "day": 1.0}[name] for name in windows}
    )


def test_days_of_another_zone_overlap_two_days_of_this_one(tmp_path):
    """By hand: days of Berlin, and the days of New York that they are asked about in."""
    write_events(tmp_path / "in.jsonl", events(0, 24 * 6))
    days = {"size": "1h", "epsilon": 0.5, "limits": '[[spans]]\nsize = "day"\nepsilon = 1'}
    days |= {"start": "2026-01-01T23:00:00Z", "end": "end = 2026-01-05T23:00:00Z"}
    run_here(write_config(tmp_path, zone="Europe/Berlin", **days))
    other = write_config(tmp_path, "other.toml", zone=ZONE, **days)
    assert {each["span"]: each["windows"] for each in budget(other)["spans"]} == {"1h": 96, "day": 4}
    assert lost(other)["day"] == pytest.approx(24 * 0.5 + 2 * 1, rel=1e-12)
    assert lost(other)["so far"] == pytest.approx(96 * 0.5 + 4 * 1, rel=1e-12)
    assert lost(other, "--active", 1)["day"] == pytest.approx(0.5 + 2 * 1, rel=1e-12)


def test_no_sum_hides_that_presence_is_public(tmp_path):
    write_events(tmp_path / "in.jsonl", events(0, 1))
    config = write_config(tmp_path)
    run_here(config)
    (note,) = budget(config)["notes"]
    assert note.startswith('privacy.keys = "presence_is_public"')
    assert "no epsilon bounds" in note.lower()
    assert note in here("budget", config).stderr


def test_where_nothing_is_decided_there_is_an_answer_of_its_own(tmp_path):
    write_events(tmp_path / "in.jsonl", events(0, 1))
    config = write_config(tmp_path, complete="false")
    run_here(config)
    done = here("budget", config)
    assert done.returncode == 9
    assert "has decided no window yet" in done.stderr
    assert here("budget", config, "--days", "8").returncode == 2


def test_the_command_of_the_page_is_as_it_is_shown(two_epochs):
    page = (Path(__file__).parents[2] / "docs/privacy.md").read_text("utf-8")
    (command,) = re.findall(r"```sh\nsfm-stream (budget .*)\n```", page)
    done = here(*command.replace("app.toml", str(two_epochs[0])).split())
    assert done.returncode == 0
    assert "under 2 keys in each, has lost at most" in done.stdout
