"""A roll-up goes on where an earlier release of sfm-stream left it, whose records held tallies (versions 1 and 2).

tests/golden/rollups_with_tallies.json was written by the last one of them over the logs below: for records that name no
span ("version 1") and for those that do ("version 2") all that was published, and after every transaction the committed
position with the number of records published by then. Its positions lie behind the releases of published hours.
"""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.rollup_cases import T0, UTC
from support.rollup_runs import HOUR_MS, QUARTER_MS, Run, cheap_estimates, marker, place_of, release, whole

from sfm_stream.pipeline.rollup import publication
from sfm_stream.sketch.sfm import NoisyCount
from sfm_stream.types import Commit
from sfm_stream.wire.codec import decode_rollup, encode

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "rollups_with_tallies.json").read_text())
VERSIONS = pytest.mark.parametrize("version", ["version 1", "version 2"])
FINEST = {(1, "15m"): "quarter"}


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication, "estimate_many", cheap_estimates)


def log_of(version: str) -> list[bytes]:
    """30 hours of two keys."""
    is_named = version == "version 2"
    marked: dict[str, Any] = {"span": "15m", "spans": ("15m",)} if is_named else {}

    def released(number: int, key: str) -> bytes:
        other = {"span": "15m", "count": NoisyCount(number % 7 - 2, Decimal("0.25"))} if is_named else {}
        return release(T0 + number * QUARTER_MS, key, **other)

    found = []
    for hour in range(30):
        low, start_ms = 4 * hour, T0 + hour * HOUR_MS
        found += [released(low, "a"), released(low + 2, "b")][: 1 + hour % 2]
        found.append(marker(start_ms, start_ms + QUARTER_MS, **marked))
        found.append(released(low + 3, "b"))
        found.append(marker(start_ms + QUARTER_MS, start_ms + HOUR_MS, **marked))
    return found


def published(version: str) -> list[bytes]:
    return [b64decode(payload) for payload in GOLDEN[version]["published"]]


def left_at(version: str, stop: tuple[int, str, int]) -> Run:
    """A roll-up that begins where the earlier one stood."""
    offset, metadata, count = stop
    run = Run(UTC, log_of(version), finest=FINEST)
    run.commit, run.history = Commit(0, offset, b64decode(metadata)), published(version)[:count]
    run.newest = {place_of(decode_rollup(payload)): payload for payload in run.history}
    run.passed = offset
    run.restart()
    return run


@VERSIONS
def test_a_record_with_the_sketches_of_its_releases_is_what_was_published_before(version: str) -> None:
    """What `export` and `inspect` show of a record is to the byte what it held."""
    run = Run(UTC, log_of(version), finest=FINEST)
    run.finish()
    shown = {place_of(record): record for record in whole(map(decode_rollup, run.newest.values()), run.log)}
    before = {place_of(record): record for record in map(decode_rollup, published(version)) if record.complete}
    assert before.keys() == shown.keys()
    for place, record in before.items():
        assert replace(shown[place], standard_error=1.0) == record  # the stand-in for the estimator said 1 then
        assert encode(replace(shown[place], standard_error=1.0)) == encode(record)


@VERSIONS
def test_it_goes_on_from_any_position(version: str) -> None:
    alone = Run(UTC, log_of(version), finest=FINEST)
    alone.finish()
    for stop in GOLDEN[version]["stops"][::11]:
        run = left_at(version, stop)
        known = len(run.history)
        run.finish()
        assert len(run.newest) == len(alone.newest)
        for payload in run.history[known:]:
            assert payload == alone.newest[place_of(decode_rollup(payload))]


@VERSIONS
@pytest.mark.parametrize("stop", [3, 33, 60])
def test_restarts_after_it_change_nothing(version: str, stop: int) -> None:
    """Some hours of a day then hold their tallies, and of others the releases are read again."""
    alone = Run(UTC, log_of(version), finest=FINEST)
    alone.finish()
    run = left_at(version, GOLDEN[version]["stops"][stop])
    run.rollup.expire(T0 + 48 * HOUR_MS)
    run.drain()
    while run.read(3):
        while (step := run.rollup.step()) is not None:
            run.take(step)
            run.restart()
            run.read(2)
        run.checkpoint()
    complete = {place: payload for place, payload in run.newest.items() if decode_rollup(payload).complete}
    assert complete.keys() == alone.newest.keys()
    for place, payload in complete.items():
        found, wanted = decode_rollup(payload), decode_rollup(alone.newest[place])
        assert (found.value, found.revision) == (wanted.value, wanted.revision)
