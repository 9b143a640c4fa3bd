"""Whether a run answered rightly. Exact peers are held to every number; a release has noise of known size."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

from support.kafka_topics import read_all

from benchmarks.peers.data_sets import DataSet, truth
from sfm_stream import estimate
from sfm_stream.wire.codec import Release, RollupRecord, decode
from sfm_stream.wire.keys import decode_key

SKETCHED = 0.15
"""So far a HyperLogLog of 2^12 may be off: nine of its standard errors."""
MEAN_Z, LEAST_SD, MOST_SD = 0.15, 0.9, 1.1
"""Bounds of the standardized errors of thousands of releases; of fewer they are wider, as their number allows."""


@dataclass(frozen=True)
class Checked:
    """right: every answer is there once and is what it should be. said: in a few words, for the table."""

    right: bool
    said: str


def exact(bootstrap: str, topic: str, data: DataSet, sketched: bool = False) -> Checked:
    """JSON answers against the exact counts; sketched: they are estimates of a HyperLogLog."""
    answers = [json.loads(value or b"") for _, _, _, value, _, _ in read_all(bootstrap, topic)]
    return judge_exact(truth(data).windows, answers, sketched)


def private(bootstrap: str, topic: str, data: DataSet) -> Checked:
    """Releases against the exact counts: each once, and errors that are as large as their standard errors say."""
    wanted, found = truth(data).windows, []
    for _, _, _, value, _, _ in read_all(bootstrap, topic):
        record = decode(value or b"")
        if isinstance(record, Release):
            made, place = estimate(record.sketch), (_page(record.key), record.window.start_ms)
            found.append((place, (made.unclamped - wanted.get(place, 0)) / made.standard_error))
    return judge_noisy("releases", wanted, found)


def rolled_up(bootstrap: str, topic: str, data: DataSet) -> Checked:
    """Hours against exact counts of all windows together. Their values are better than their standard errors say."""
    wanted, found = truth(data).hours, []
    for _, _, _, value, _, _ in read_all(bootstrap, topic):
        record = decode(value or b"")
        if isinstance(record, RollupRecord) and record.grain == "hour":
            page = _page(record.key)
            found.append((page, (record.value - wanted.get(page, 0)) / record.standard_error))
    return judge_noisy("hours", wanted, found, least_sd=0.0)


def all_counted(said: Mapping[str, float], data: DataSet) -> Checked:
    """By the worker's own metrics."""
    counted, dropped = int(said.get("sfm_events_counted_total", 0)), int(said.get("sfm_events_dropped_total", 0))
    return Checked(counted == data.total and not dropped, f"{counted:,} of {data.total:,} counted")


def hashed(said: str, data: DataSet) -> Checked:
    """What the bare loop printed: number of events and the exclusive or of all hashes."""
    right = said.split() == [str(data.total), str(truth(data).hashes)]
    return Checked(right, "every event hashed" if right else f"printed {said[:80]}")


def judge_exact(
    wanted: Mapping[tuple[str, int], int], answers: Iterable[Mapping[str, Any]], sketched: bool = False
) -> Checked:
    """answers: with page, start (ms) and n; those of windows that are not wanted are passed over."""
    got: dict[tuple[str, int], int] = {}
    twice = 0
    for answer in answers:
        place = answer["page"], answer["start"]
        if place in wanted:
            twice += place in got
            got[place] = answer["n"]
    same = sum(got.get(place) == count for place, count in wanted.items())
    worst = max((abs(n / wanted[place] - 1) for place, n in got.items()), default=0.0)
    right = not twice and len(got) == len(wanted) and (worst <= SKETCHED if sketched else same == len(wanted))
    said = f"{same:,} of {len(wanted):,} exact" + (f", worst {worst:.1%} off" if worst else "")
    return Checked(right, said + (f", {twice} twice" if twice else ""))


def judge_noisy(
    kind: str, wanted: Collection[Any], found: Sequence[tuple[Any, float]], least_sd: float = LEAST_SD
) -> Checked:
    """found: each answer's place, and its error by its own standard error."""
    errors = [error for place, error in found if place in wanted]
    once = len(errors) == len(found) == len(wanted) == len({place for place, _ in found})
    mean, sd = (fmean(errors), pstdev(errors)) if errors else (0.0, 0.0)
    # Of n standard normal errors the mean has the standard error 1/sqrt(n), and their deviation one of 1/sqrt(2n).
    room = 5 / max(len(errors), 1) ** 0.5
    right = once and abs(mean) <= MEAN_Z + room and least_sd - room <= sd <= MOST_SD + room
    said = f"{len(errors):,} of {len(wanted):,} {kind}" + ("" if once else f" in {len(found):,} records")
    return Checked(right, f"{said}, errors {sd:.2f} standard errors")


def _page(key: bytes) -> str:
    (page,) = decode_key(key)
    return str(page)
