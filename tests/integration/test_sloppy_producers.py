"""What sloppy producers write is counted wherever it harms nothing: marks of byte order, NaN, half an emoji."""

from __future__ import annotations

import gzip
import json

import pytest
from support.embedded_runs import MINUTE_MS, START_MS, NoFlips, command, releases, run_here, write_config

MARK = b"\xef\xbb\xbf"
GOOD = [
    json.dumps({"page": f"p{n % 3}", "user": f"u{n % 40}", "at": START_MS + n * MINUTE_MS // 4}).encode()
    for n in range(200)
]


def contents(folder, data):
    folder.mkdir()
    (folder / "in.jsonl").write_bytes(data)
    report = run_here(write_config(folder), NoFlips())
    assert not report.ingest.dropped
    return {(r.window, r.key): r.sketch.bits for r in releases(folder / "out.sqlite")}


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    return contents(tmp_path_factory.mktemp("clean") / "run", b"\n".join(GOOD) + b"\n")


def sloppy(extra):
    """Every third record has one more field."""
    return [line[:-1] + b',"x":' + extra + b"}" if n % 3 == 0 else line for n, line in enumerate(GOOD)]


@pytest.mark.parametrize(
    "lines",
    [
        [MARK + GOOD[0], *GOOD[1:]],
        [MARK + line for line in GOOD],
        *(
            sloppy(extra)
            for extra in (b"NaN", b"-Infinity", b'"\\ud83d"', b'"\xc3"', b'"\xed\xa0\xbd"', b'{"y":[NaN]}')
        ),
    ],
    ids=["mark", "marks", "NaN", "-Infinity", "half an emoji", "Latin 1", "half an emoji in bytes", "NaN inside"],
)
def test_nothing_is_lost(tmp_path, clean, lines):
    assert contents(tmp_path / "run", b"\n".join(lines) + b"\n") == clean


def test_each_member_of_a_gzip_file_may_begin_with_a_mark(tmp_path, clean):
    members = [MARK + b"\n".join(part) + b"\n" for part in (GOOD[:70], GOOD[70:])]
    assert contents(tmp_path / "run", b"".join(map(gzip.compress, members))) == clean


def test_standard_input_may_begin_with_a_mark(tmp_path):
    config = write_config(tmp_path)
    config.write_text(config.read_text().replace('"in.jsonl"', '"-"'))
    done = command("run", config, "--json", input=(MARK + b"\n".join(GOOD) + b"\n").decode("utf-8"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counted"] == len(GOOD)


def test_a_configuration_may_begin_with_a_mark(tmp_path):
    config = write_config(tmp_path)
    config.write_bytes(MARK + config.read_bytes())
    assert command("config", "show", config, "--statement").returncode == 0
