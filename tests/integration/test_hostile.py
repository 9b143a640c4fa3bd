"""Hostile lines between good ones: counted by reason, and no count of anyone else changes.

The coins are a tape on which nothing flips, so equal releases mean equal raw sketches.
"""

from __future__ import annotations

import json
import random

import pytest
from support.embedded_runs import HOUR_MS, MINUTE_MS, START_MS, NoFlips, releases, run_here, write_config

GOOD = [
    json.dumps({"page": f"p{n % 3}", "user": f"u{n % 40}", "at": START_MS + n * MINUTE_MS // 4}).encode()
    for n in range(600)
]
AT = b'"at":%d' % (START_MS + MINUTE_MS)
HOSTILE: list[tuple[bytes, str]] = [
    (b"{broken", "malformed"),
    (b'{"page":"p0","user":"x",' + AT, "malformed"),
    (b"[1,2,3]", "malformed"),
    (b'"text"', "malformed"),
    (b"nul", "malformed"),
    (b'{"page":"p0","user":NaN,' + AT + b"}", "item_not_finite"),
    (b'{"page":"p0","user":"x","at":Infinity}', "time_unreadable"),
    (b'{"page":"p0","user":"\\ud800",' + AT + b"}", "item_not_unicode"),
    (b'{"page":"\xc3","user":"x",' + AT + b"}", "key_not_unicode"),
    (b"[" * 4_000, "malformed"),
    (b"[" * 100_000, "record_too_long"),
    (b'{"page":"p0","user":"\xff\xfe",' + AT + b"}", "item_not_unicode"),
    (b'{"page":"p0","user":\xff\xfe,' + AT + b"}", "not_utf8"),
    (b'\x00\x00\x00\x00\x07{"page":"p0"}', "framed"),
    (b'{"page":"p0","user":"x",' + AT + b',"pad":"' + b"x" * 5000 + b'"}', "record_too_long"),
    (b'{"page":"p0","user":"a","user":"b",' + AT + b"}", "duplicate_field"),
    (b'{"page":"p0","user":"a","\\u0075ser":"b",' + AT + b"}", "duplicate_field"),
    (b'{"page":"p0","page":"p1","user":"a",' + AT + b"}", "duplicate_field"),
    (b'{"user":"x",' + AT + b"}", "key_missing"),
    (b'{"page":null,"user":"x",' + AT + b"}", "key_missing"),
    (b'{"page":false,"user":"x",' + AT + b"}", "key_type"),
    (b'{"page":1.0,"user":"x",' + AT + b"}", "key_type"),
    (b'{"page":["p0"],"user":"x",' + AT + b"}", "key_type"),
    (b'{"page":99999999999999999999,"user":"x",' + AT + b"}", "key_range"),
    (b'{"page":"' + b"k" * 2000 + b'","user":"x",' + AT + b"}", "key_too_long"),
    (b'{"page":"p0",' + AT + b"}", "item_missing"),
    (b'{"page":"p0","user":null,' + AT + b"}", "item_missing"),
    (b'{"page":"p0","user":true,' + AT + b"}", "item_type"),
    (b'{"page":"p0","user":1.5,' + AT + b"}", "item_type"),
    (b'{"page":"p0","user":{"id":1},' + AT + b"}", "item_type"),
    (b'{"page":"p0","user":123456789012345678901234567890,' + AT + b"}", "item_range"),
    (b'{"page":"p0","user":"x"}', "time_missing"),
    (b'{"page":"p0","user":"x","at":null}', "time_missing"),
    (b'{"page":"p0","user":"x","at":true}', "time_type"),
    (b'{"page":"p0","user":"x","at":"2026-01-01T00:00:00Z"}', "time_type"),
    (b'{"page":"p0","user":"x","at":%d}' % (START_MS // 1000), "time_looks_like_seconds"),
    (b'{"page":"p0","user":"x","at":%d}' % (START_MS * 1000), "time_looks_like_microseconds"),
    (b'{"page":"p0","user":"x","at":%d}' % (START_MS * 1000_000), "time_looks_like_nanoseconds"),
    (b'{"page":"p0","user":"x","at":-5}', "time_implausible"),
    (b'{"page":"p0","user":"x","at":%d}' % (START_MS + 100 * 366 * 24 * HOUR_MS), "time_implausible"),
    (b'{"page":"p0","user":"x","at":99999999999999999999999999}', "time_implausible"),
    (b'{"page":"p0","user":"x","at":%d}' % (START_MS - HOUR_MS), "before_start"),
]
FALSY = [b'{"page":0,"user":0,' + AT + b"}", b'{"page":"","user":"",' + AT + b"}"]
"""Ordinary values that look false: they count, each under its own key."""


def run(folder, lines, **settings):
    folder.mkdir()
    (folder / "in.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    config = write_config(folder, **settings)
    config.write_text(config.read_text().replace("[window]", "max_record_bytes = 4096\n[window]"))
    report = run_here(config, NoFlips())
    return report.ingest, {(r.window, r.key): r.sketch.bits for r in releases(folder / "out.sqlite")}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    rng = random.Random(3)
    mixed = list(GOOD)
    for line in [line for line, _ in HOSTILE] + FALSY:
        mixed.insert(rng.randrange(5, 30), line)  # early: their windows are open, they are not merely late
    return run(folder / "clean", GOOD), run(folder / "mixed", mixed)


def test_every_hostile_line_is_counted_under_its_reason(runs):
    _, (report, _) = runs
    expected: dict[str, int] = {}
    for _, reason in HOSTILE:
        expected[reason] = expected.get(reason, 0) + 1
    assert {reason.name.lower(): count for reason, count in report.dropped.items()} == expected
    assert report.counted == len(GOOD) + len(FALSY)


def test_no_count_changes(runs):
    (_, clean), (_, mixed) = runs
    assert {place: bits for place, bits in mixed.items() if place in clean} == clean


def test_falsy_keys_are_keys_of_their_own(runs):
    (_, clean), (_, mixed) = runs
    added = sorted(key for window, key in set(mixed) - set(clean))
    assert added == [b"\x91\x00", b"\x91\xa0"]  # [0] and [""]


def test_declared_keys_leave_no_trace_of_hostile_lines_at_all(tmp_path):
    settings = {"keys": "declared", "privacy": 'declared = ["p0", "p1", "p2"]'}
    _, clean = run(tmp_path / "clean", GOOD, **settings)
    _, mixed = run(tmp_path / "mixed", GOOD[:20] + [line for line, _ in HOSTILE] + FALSY + GOOD[20:], **settings)
    assert mixed == clean
