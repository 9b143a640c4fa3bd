"""Declared keys in a pipeline over files: which releases there are after a first run, a restart, a key that is added
later and a new epoch, for every kind of key; against plain sets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgpack
import pytest
import xxhash
from support.embedded_runs import START_MS, NoFlips, markers, releases, run_here, write_config

from sfm_stream.errors import StateError

SIZE_MS = 900_000
LATER, SECOND_EPOCH = 5, 7
Key = tuple[str | int, ...]


@dataclass(frozen=True)
class Kind:
    """first: keys from the beginning, late: from window 5 on, second: those of epoch 2."""

    fields: str
    first: list[Key]
    late: list[Key]
    second: list[Key]


KINDS = {
    "text": Kind('"page"', [("a",), ("silent",)], [("new",)], [("a",), ("new",), ("other",)]),
    "integer": Kind('"page"', [(0,), (-7,)], [(7,)], [(0,), (7,), (9,)]),
    "composite": Kind('["page", "n"]', [("a", 1), ("a", 2)], [("b", "1")], [("a", 1), ("b", "1"), ("b", 1)]),
    "none": Kind("[]", [()], [], [()]),
    "none, later": Kind("[]", [], [()], [()]),
}


def toml(keys: list[Key]) -> str:
    return json.dumps([key[0] if len(key) == 1 else list(key) for key in keys])


def utc(window: int) -> str:
    return datetime.fromtimestamp((START_MS + window * SIZE_MS) / 1000, UTC).isoformat()


def config(folder: Path, kind: Kind, epoch: int = 1, since: int | None = None) -> Path:
    """since: from which window on the list has the late keys."""
    later = f"[[privacy.declared_from]]\nsince = {utc(since)}\nkeys = {toml(kind.late)}" if since else ""
    return write_config(
        folder,
        epoch=epoch,
        start=utc(0 if epoch == 1 else SECOND_EPOCH),
        key=kind.fields,
        keys="declared",
        privacy=f"declared = {toml(kind.first if epoch == 1 else kind.second)}",
        limits=later,
        levels=24,
        complete="false",
    )


def users(window: int, key: Key) -> set[str]:
    return set() if key == ("silent",) else {f"{window}.{number}" for number in range(window + 2)}


def append(folder: Path, kind: Kind, first: int, last: int) -> None:
    """Events of all keys in these windows, and one that closes the last of them."""
    keys = list(dict.fromkeys(kind.first + kind.late + kind.second))
    with (folder / "in.jsonl").open("a") as file:
        for window in range(first, last + 1):
            for key in keys:
                for user in sorted(users(window, key)):
                    names = dict(zip(("page", "n"), key, strict=False))
                    file.write(json.dumps({**names, "user": user, "at": START_MS + window * SIZE_MS + 1}) + "\n")
        closing = {"page": "nobody", "n": 0, "user": None, "at": START_MS + (last + 1) * SIZE_MS + 300_001}
        file.write(json.dumps(closing) + "\n")


def cell(user: str) -> int:
    """Its place among 24 levels of 64 buckets."""
    digest = xxhash.xxh64_intdigest(user.encode())
    bucket, rest = digest >> 58, digest & ((1 << 58) - 1)
    return 64 * min((rest & -rest).bit_length() - 1, 23) + bucket


def wanted(kind: Kind, windows: range) -> dict[tuple[bytes, int], set[int]]:
    found = {}
    for window in windows:
        listed = kind.second if window >= SECOND_EPOCH else kind.first + (kind.late if window >= LATER else [])
        for key in listed:
            found[msgpack.packb(list(key)), window] = {cell(user) for user in users(window, key)}
    return found


def published(folder: Path) -> Iterator[tuple[tuple[bytes, int], set[int]]]:
    for release in releases(folder / "out.sqlite"):
        bits = int.from_bytes(release.sketch.bits, "little")
        window = (release.window.start_ms - START_MS) // SIZE_MS
        yield (release.key, window), {place for place in range(64 * 24) if bits >> place & 1}


@pytest.mark.parametrize("name", KINDS)
def test_each_declared_key_is_released_once_in_each_of_its_windows(tmp_path, name):
    kind = KINDS[name]
    stages = [(1, 1000, 1), (1, 1000, 3), (1, LATER, 6), (2, None, 9)]
    closed = -1
    for epoch, since, last in stages:
        append(tmp_path, kind, closed + 1, last)
        run_here(config(tmp_path, kind, epoch, since), NoFlips())
        closed = last
        found = list(published(tmp_path))
        assert len(found) == len(dict(found)), "released twice"
        assert dict(found) == wanted(kind, range(closed + 1))
    decided = [(marker.epoch, (marker.start_ms - START_MS) // SIZE_MS) for marker in markers(tmp_path / "out.sqlite")]
    assert decided == [(1 if window < SECOND_EPOCH else 2, window) for window in range(closed + 1)]


def test_the_list_is_open_until_the_first_release_and_fixed_behind_it(tmp_path):
    kind = KINDS["text"]
    (tmp_path / "in.jsonl").write_text(json.dumps({"page": "a", "user": "u", "at": START_MS + 1}) + "\n")
    run_here(config(tmp_path, Kind('"page"', [("b",)], [], [])), NoFlips())
    append(tmp_path, kind, 0, 1)
    run_here(config(tmp_path, kind), NoFlips())
    assert dict(published(tmp_path)).keys() == wanted(kind, range(2)).keys()
    with pytest.raises(StateError, match=r"partition 0: privacy.declared changed"):
        run_here(config(tmp_path, Kind('"page"', [("b",)], [], [])), NoFlips())
