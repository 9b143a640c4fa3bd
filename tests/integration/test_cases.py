"""`sfm-stream test`: what it says of an event is what a run makes of it; its messages; the example of its page."""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.embedded_runs import HOUR_MS, IN_TIME, MINUTE_MS, START_MS, NoFlips, here, releases, run_here, write_config
from support.kafka_runs import CONFIG as ON_KAFKA
from support.kafka_runs import DEFAULTS as OF_KAFKA

from sfm_stream.answers.key_notation import key_json
from sfm_stream.readable import instant
from sfm_stream.wire.keys import decode_key

PAGE = (Path(__file__).parents[2] / "docs/testing.md").read_text("utf-8")
TOML = re.findall(r"```toml\n# (\S+)\n(.*?)```", PAGE, re.S)
(SHOWN,) = re.findall(r"```text\n(.*?)```", PAGE, re.S)
SPANS = '[[spans]]\nsize = "hour"\nepsilon = 4\n[[spans]]\nsize = "day"\nepsilon = 4'
DECLARED = {"keys": "declared", "privacy": 'declared = ["p", "q"]'}


def run_cases(config: Path, cases: str, *more: str) -> Any:
    path = config.with_name("cases.toml")
    path.write_text(cases, "utf-8")
    return here("test", config, path, *more)


def outcomes(config: Path, cases: str) -> list[dict[str, Any]]:
    """What becomes of each case."""
    done = run_cases(config, cases, "--json")
    assert done.stderr == ""
    return [case["got"] for case in json.loads(done.stdout)["cases"]]


def case(expected: str = 'dropped = "late"', **record: object) -> str:
    lines = "\n".join(f"{name} = {value}" for name, value in record.items())
    return f'[[cases]]\nname = "n"\n{lines}\n{expected}\n'


# The page


def test_the_example_of_the_page_is_as_it_is_shown(tmp_path):
    for name, text in TOML:
        (tmp_path / name).write_text(text, "utf-8")
    done = here("test", tmp_path / "app.toml", tmp_path / "cases.toml")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == SHOWN


def test_without_the_wrong_case_it_passes(tmp_path):
    texts = dict(TOML)
    (tmp_path / "app.toml").write_text(texts["app.toml"], "utf-8")
    right = texts["cases.toml"].replace('"late"', '"time_looks_like_seconds"')
    done = run_cases(tmp_path / "app.toml", right)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "5 cases, 0 failed")


# A run says the same


def lines(seed: int) -> list[bytes]:
    """Records of an input: out of order by up to three hours, some of them unusable, each item once."""
    rng = random.Random(seed)
    made = []
    for number in range(150):
        at = START_MS + number * 10 * MINUTE_MS - rng.choice([0, 0, 0, 4, 40, 70, 190]) * MINUTE_MS
        event: dict[str, object] = {"page": rng.choice("pqr"), "user": number, "at": at}
        if rng.random() < 0.1:
            event |= rng.choice([{"at": "soon"}, {"page": None}, {"user": [1]}, {"at": 1}, {"at": at // 1000}])
        made.append(b"{" if rng.random() < 0.05 else json.dumps(event).encode())
    return made


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    "settings",
    [
        {**IN_TIME, "limits": SPANS},
        {"order": 'order = "time"', "limits": SPANS, "zone": "Asia/Kolkata", "start": "2026-01-01T08:15:00Z"}
        | DECLARED,
        {"limits": SPANS, "end": "end = 2026-01-01T20:00:00Z", "start": "2026-01-01T03:00:00Z"},
        {"limits": SPANS, "end": "end = 2026-01-03T00:00:00Z", "start": "2026-01-01T03:00:00Z"},
        {"limits": SPANS, "zone": "Asia/Kolkata"},
    ],
    ids=[
        "in order of time",
        "declared, inside a day of a zone",
        "whole, inside a day",
        "whole, between borders",
        "whole",
    ],
)
def test_a_run_counts_and_drops_what_is_said(tmp_path, settings, seed):
    """Of the same records: the reasons, and in every window of every span the cells of those that count there."""
    config = write_config(tmp_path, buckets=4096, levels=24, **settings)
    if settings.get("start") is None:
        config.write_text(config.read_text().replace("start = 2026-01-01T00:00:00Z\n", ""))
    records = lines(seed)
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(records) + b"\n")
    got = outcomes(config, "".join(case(text=f"'{record.decode()}'") for record in records))
    report = run_here(config, coins=NoFlips())
    said = Counter(each["dropped"] for each in got if "dropped" in each)
    assert said == {reason.name.lower(): count for reason, count in report.ingest.dropped.items()}
    counted: dict[tuple[str, str, str], int] = defaultdict(int)
    for each in got:
        for span, start in each.get("counted", {}).items():
            counted[span, start, str(each["key"])] += 1
    released = {
        (release.span, instant(release.window.start_ms), str(key_json(decode_key(release.key)))): int(
            np.bitwise_count(np.frombuffer(release.sketch.bits, np.uint8)).sum()
        )
        for release in releases(tmp_path / "out.sqlite")
    }
    has_days = settings.get("end") != "end = 2026-01-01T20:00:00Z"
    assert {span for span, _, _ in released} == {"15m", "hour", *(["day"] if has_days else [])}
    assert {place: cells for place, cells in released.items() if cells} == counted


# On a topic


def on_kafka(folder: Path, **settings: object) -> Path:
    fields = OF_KAFKA | {"bootstrap": '["nowhere:9092"]', "topic": "in", "id": "views", **settings}
    fields = {**fields, "start": "2026-01-01T00:00:00Z"}
    path = folder / "app.toml"
    path.write_text(ON_KAFKA.format(**fields))
    return path


def record(page: str = "p", at_ms: int = START_MS, **more: object) -> dict[str, object]:
    return {"text": f"""'{json.dumps({"page": page, "user": 1, "at": at_ms})}'""", **more}


def time(minutes: float) -> str:
    return instant(START_MS + round(minutes * MINUTE_MS))


def test_on_a_topic_arrival_is_that_of_the_log(tmp_path):
    """Where the broker gives it, a record counts by its own arrival, whatever came before it."""
    cases = "".join(
        [
            case(**record(arrival=time(1.4))),
            case(**record(arrival=time(9))),
            case(**record(arrival=time(1.5))),
            case(**record(at_ms=START_MS + 2 * HOUR_MS, arrival=time(9))),
            case(**record(at_ms=START_MS - 1)),
            case(tombstone="true"),
        ]
    )
    first = {"counted": {"1m": time(0)}, "key": ["p"]}
    dropped = [{"dropped": each} for each in ("future", "before_start", "tombstone")]
    config = on_kafka(tmp_path, timestamps="log_append_time", margin="10m")
    assert outcomes(config, cases) == [first, {"dropped": "late"}, first, *dropped]
    config = on_kafka(tmp_path, timestamps="create_time")
    assert outcomes(config, cases) == [first, {"dropped": "late"}, {"dropped": "late"}, *dropped]


def test_a_topic_has_partitions_with_keys_and_clocks_of_their_own(tmp_path):
    where = next(page for page in "pqrstuv" if other_partition(tmp_path, page))
    cases = "partitions = 2\n" + "".join(
        [
            case(**record("p", arrival=time(0))),
            case(**record("p", START_MS + HOUR_MS, arrival=time(60))),
            case(**record(where, arrival=time(1))),
            case(**record("p", arrival=time(1))),
            case(**record("p", START_MS + HOUR_MS, arrival=time(60), partition=0)),
            case(**record("p", START_MS + HOUR_MS, arrival=time(60), partition=1)),
        ]
    )
    got = outcomes(on_kafka(tmp_path), cases)
    assert [each.get("dropped") for each in got[:4]] == [None, None, None, "late"]
    assert {each.get("dropped") for each in got[4:]} == {None, "key_misplaced"}


def other_partition(folder: Path, page: str) -> bool:
    """Whether a page is in another partition of two than "p"."""
    cases = "partitions = 2\n" + "".join(case(**record(each, arrival=time(0), partition=0)) for each in ("p", page))
    return len({str(each.get("dropped")) for each in outcomes(on_kafka(folder), cases)}) == 2


def test_without_a_start_the_first_start_decides(tmp_path):
    config = on_kafka(tmp_path)
    config.write_text(config.read_text().replace("start = 2026-01-01T00:00:00Z\n", ""))
    cases = (
        f"first_start = {time(0.5)}\n" + case(**record(arrival=time(0))) + case(**record(at_ms=START_MS + MINUTE_MS))
    )
    assert outcomes(config, cases) == [{"dropped": "before_start"}, {"counted": {"1m": time(1)}, "key": ["p"]}]


# What is compared


@pytest.mark.parametrize(
    ("expected", "passes"),
    [
        ("counted = {15m = 2026-01-01T00:00:00Z}", True),
        ('counted = {"900 s" = 2026-01-01T01:00:00+01:00}\nkey = "p"', True),
        ("counted = {15m = 2026-01-01T00:15:00Z}", False),
        ('counted = {15m = 2026-01-01T00:00:00Z}\nkey = "q"', False),
        ('dropped = "late"', False),
    ],
)
def test_window_and_key_are_compared(tmp_path, expected, passes):
    config = write_config(tmp_path)
    done = run_cases(config, case(expected, **record()))
    assert done.returncode == (0 if passes else 1)
    assert done.stdout.splitlines()[-1] == f"1 cases, {0 if passes else 1} failed"


def test_a_span_that_is_not_expected_fails(tmp_path):
    config = write_config(tmp_path, limits=SPANS)
    done = run_cases(config, case("counted = {15m = 2026-01-01T00:00:00Z}", **record()))
    assert done.returncode == 1
    assert "got       counted: 15m from 2026-01-01T00:00:00Z, hour from 2026-01-01T00:00:00Z, day from" in done.stdout


@pytest.mark.parametrize(
    ("unit", "written"),
    [("ms", 1767225660500), ("s", 1767225660.5), ("us", 1767225660500000), ("ns", 1767225660500000000),
     ("iso8601", "2026-01-01T00:01:00.500000+00:00"), ("%Y/%m/%d %H:%M %z", "2026/01/01 00:01 +0000")],
)  # fmt: skip
def test_a_time_is_written_as_the_configuration_reads_it(tmp_path, unit, written):
    config = write_config(tmp_path)
    config.write_text(config.read_text().replace('time_unit = "ms"', f'time_unit = "{unit}"'))
    of_time = case(event='{page = "p", user = 1, at = 2026-01-01T00:01:00.5Z}')
    of_text = case(text=f"""'{json.dumps({"page": "p", "user": 1, "at": written})}'""")
    assert outcomes(config, of_time) == outcomes(config, of_text) == [{"counted": {"15m": time(0)}, "key": ["p"]}]


# What is wrong with a file


@pytest.mark.parametrize(
    ("cases", "problem"),
    [
        ("cases = 3", "cases: expected a table [[cases]] for each, got int"),
        ("", "cases: field required"),
        (case(nam="1", **record()), 'cases.0.nam: unknown setting; did you mean "name"?'),
        (case('dropped = "latte"', **record()), 'record_too_long; did you mean "late"?'),
        (case('dropped = "zzz"', **record()), "cases.0.dropped: expected the reason why a record is dropped, such as"),
        (case("", **record()), "cases.0: one of counted and dropped is needed"),
        (case(), "cases.0: one of event, text and tombstone = true is needed, and only one"),
        (case('dropped = "late"\nkey = "p"', **record()), "cases.0: key is for a case that is counted"),
        (case("counted = {hour = 2026-01-01T00:00:00Z}", **record()), "hour is not released; released are 15m"),
        (case("counted = {15m = 2026-01-01}", **record()), "counted.15m: expected a date and time with an offset"),
        (case(event="{at = 12:00:00}"), "cases.0.event: a time without offset in it has no JSON"),
        (case(text="'a\\\\nb'".replace("'", '"').replace("\\\\", "\\")), "cases.0.text: a line of a file is not empty"),
        (case(arrival=time(0), **record()), "cases.0.arrival: lines of a file have none"),
        ("partitions = 2\n" + case(**record()), "partitions: a file has none"),
        ("x = [", "cases.toml: not TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_named(tmp_path, cases, problem):
    done = run_cases(write_config(tmp_path), cases)
    assert (done.returncode, done.stdout) == (3, "")
    assert problem in done.stderr


@pytest.mark.parametrize(
    ("cases", "problem"),
    [
        (case(**record()), "cases.0.arrival: needed"),
        (case(**record(arrival=time(0), partition=1)), "cases.0.partition: 1 is not one of 1 (partitions)"),
    ],
)
def test_what_a_topic_needs_is_named(tmp_path, cases, problem):
    done = run_cases(on_kafka(tmp_path), cases)
    assert done.returncode == 3
    assert problem in done.stderr


def test_a_file_that_is_not_there_is_named(tmp_path):
    done = here("test", write_config(tmp_path), tmp_path / "none.toml")
    assert (done.returncode, done.stderr) == (3, f"error: {tmp_path / 'none.toml'}: No such file or directory\n")


def test_where_a_worker_would_stop_the_case_is_named(tmp_path):
    config = write_config(tmp_path, **IN_TIME, limits="max_gap_windows = 5")
    done = run_cases(config, case(**record()) + case(**record(at_ms=START_MS + 3 * HOUR_MS)))
    assert done.returncode == 4
    assert "cases.1 (n): a worker stops here: " in done.stderr


def test_every_setting_of_a_case_is_on_the_page():
    from sfm_stream.config.cases import Case, Cases

    named = set(re.findall(r"`(\w+)(?: = true)?`", PAGE))
    assert {*Case.model_fields, *Cases.model_fields} - {"cases"} <= named
    assert tomllib.loads(dict(TOML)["cases.toml"])["first_start"]
