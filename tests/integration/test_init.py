"""`sfm-stream init`: what it writes is accepted, plans no noise, and shows nothing of what is in the input."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.embedded_runs import START_MS, here
from support.patience import PATIENCE_S

from sfm_stream.cli.noise_warnings import noise_of
from sfm_stream.composition.field_guess import guess_fields
from sfm_stream.config.config import load_config

ASK = ("--ask", "hour", "200", "5000", "--ask", "day", "2000", "50000", "--budget", "4", "--active", "4")
BROKER = ("--bootstrap", "nowhere:9092", "--topic", "views", "--key", "page", "--item", "user")
SECRET = "nobody-may-see-this"


def write(path: Path, records: list[dict[str, object]]) -> Path:
    path.write_bytes(b"".join(json.dumps(each).encode() + b"\n" for each in records))
    return path


def views(**more: object) -> list[dict[str, object]]:
    return [
        {"page": f"{SECRET}{n % 5}", "user": f"{SECRET}{n % 90}", "at": START_MS + n * 60_000, "agent": "x", **more}
        for n in range(200)
    ]


def init(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return here("init", path, *options)


def test_what_is_written_for_a_file_is_accepted_by_check_and_counts(tmp_path):
    write(tmp_path / "views.jsonl", views())
    done = init(tmp_path / "app.toml", "--input", "views.jsonl", *ASK)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "app.toml").read_text()
    assert text.count("#") > 10
    checked = here("check", tmp_path / "app.toml")
    assert checked.returncode == 0, checked.stderr
    assert "200 records looked at: ok 200" in checked.stdout
    assert "warning" not in checked.stderr
    event = tomllib.loads(text)["event"]
    assert event == {"key": "page", "item": "user", "time": "at", "time_unit": "ms"}
    assert here("run", tmp_path / "app.toml").returncode == 0


def test_nothing_of_what_fields_hold_is_shown_or_written(tmp_path):
    write(tmp_path / "views.jsonl", views())
    done = init(tmp_path / "app.toml", "--input", "views.jsonl", *ASK)
    for said in (done.stdout, done.stderr, (tmp_path / "app.toml").read_text()):
        assert SECRET not in said
    assert "  user: in 200, 90 different, perhaps what is counted" in done.stderr


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), {"timestamps": "log_append_time"}),
        (("--timestamps", "create_time"), {"timestamps": "create_time"}),
        (("--bootstrap", "other:9092"), {"bootstrap": ["nowhere:9092", "other:9092"]}),
    ],
)
def test_what_is_written_for_a_cluster_is_accepted(tmp_path, options, expected):
    done = init(tmp_path / "app.toml", *BROKER, *ASK, *options)
    assert done.returncode == 0, done.stderr
    config = load_config(tmp_path / "app.toml")
    assert expected.items() <= config.kafka.model_dump(mode="json").items()
    assert config.event.time is None
    assert config.window.grace == 300_000
    assert noise_of(config) == []


def test_a_file_that_grows_is_read_in_order_of_time(tmp_path):
    write(tmp_path / "views.jsonl", views())
    done = init(tmp_path / "app.toml", "--input", "views.jsonl", "--grows", "--grace", "90s", *ASK)
    assert done.returncode == 0, done.stderr
    config = load_config(tmp_path / "app.toml")
    assert (config.whole, config.window.grace) == (False, 90_000)


def test_keys_are_declared_or_selected(tmp_path):
    keys = ("--declare", "/", "--declare", 'a "b"\\')
    assert init(tmp_path / "a.toml", *BROKER, *ASK, *keys).returncode == 0
    assert load_config(tmp_path / "a.toml").settings.privacy.declared == ["/", 'a "b"\\']
    two = ("--key", "site", "--declare", '["/", 3]')
    assert init(tmp_path / "b.toml", *BROKER, *ASK, *two).returncode == 0
    assert load_config(tmp_path / "b.toml").settings.privacy.declared == [["/", 3]]
    assert init(tmp_path / "c.toml", *BROKER, *ASK, "--selection", "0.1", "1e-8").returncode == 0
    privacy = load_config(tmp_path / "c.toml").settings.privacy
    assert (privacy.keys, float(privacy.epsilon_selection), float(privacy.delta_selection)) == ("selected", 0.1, 1e-8)


def test_days_are_released_too_where_merged_they_would_be_noise(tmp_path):
    """Only hours are asked for, and roll-ups make days of them whatever is asked."""
    done = init(tmp_path / "app.toml", *BROKER, "--ask", "hour", "300", "9000", "--budget", "3", "--active", "4")
    assert done.returncode == 0, done.stderr
    config = load_config(tmp_path / "app.toml")
    assert [span.name for span in config.budget.spans] == ["hour", "day"]
    assert noise_of(config) == []


def test_what_would_be_noise_is_refused_and_nothing_is_written(tmp_path):
    done = init(tmp_path / "app.toml", *BROKER, "--ask", "5m", "2", "3", "--budget", "20")
    assert done.returncode == 2
    assert "would be worth nothing" in done.stderr
    assert "Raise --budget" in done.stderr
    assert not (tmp_path / "app.toml").exists()


def test_a_file_that_is_there_is_left_alone(tmp_path):
    (tmp_path / "app.toml").write_text("mine")
    done = init(tmp_path / "app.toml", *BROKER, *ASK)
    assert (done.returncode, (tmp_path / "app.toml").read_text()) == (2, "mine")
    assert "is there already, and is left alone" in done.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "missing: --input, or --bootstrap and --topic, --key, --item, --ask, --budget. On a terminal they"),
        (("--bootstrap", "b:9092", *ASK), "missing: --topic, --key, --item."),
        (("--input", "x", "--bootstrap", "b:9092"), "--input and --bootstrap: one of them"),
        (("--input", "x", "--topic", "t"), "--topic: is for a cluster"),
        ((*BROKER, "--declare", "a", "--selection", "1", "1e-9"), "--declare and --selection: keys are declared or"),
        ((*BROKER, *ASK, "--key", "b", "--declare", "a"), 'a key of 2 fields is a list in JSON, such as ["a", "a"]'),
        ((*BROKER, *ASK, "--budget", "none"), "'none' is no number above 0"),
        ((*BROKER, *ASK, "--ask", "7x", "1", "1"), "'7x' is no span that can be asked for"),
    ],
)
def test_what_is_missing_or_wrong_is_named(tmp_path, options, problem):
    done = init(tmp_path / "app.toml", *options)
    assert done.returncode == 2
    assert problem in done.stderr
    assert not (tmp_path / "app.toml").exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--input", "none.jsonl", *ASK), "none.jsonl"),
        ((*BROKER, *ASK, "--zone", "Mars/Base"), "'Mars/Base' is not an IANA time zone name"),
        ((*BROKER, *ASK, "--id", "Views"), "pipeline.id"),
    ],
)
def test_what_no_configuration_takes_is_named(tmp_path, options, problem):
    done = init(tmp_path / "app.toml", *options)
    assert done.returncode != 0
    assert problem in done.stderr
    assert not (tmp_path / "app.toml").exists()


# What fields look like


@pytest.mark.parametrize(
    ("at", "unit", "naive"),
    [
        (1767225600, "s", False),
        (1767225600.25, "s", False),
        (1767225600000, "ms", False),
        ("1767225600000", "ms", False),
        (1767225600000000, "us", False),
        (1767225600000000000, "ns", False),
        ("2026-01-01T00:00:00Z", "iso8601", False),
        ("2026-01-01 00:00:00", "iso8601", True),
    ],
)
def test_the_unit_of_times_is_seen(tmp_path, at, unit, naive):
    """Whatever the field is called, and inside an object."""
    records = [{"page": "p", "meta": {"when.it": at}, "user": n} for n in range(20)]
    guess = guess_fields(str(write(tmp_path / "in.jsonl", records)))
    assert guess.time is not None
    assert (guess.time.path, guess.time.unit, guess.time.is_naive) == ("meta.when\\.it", unit, naive)
    done = init(tmp_path / "app.toml", "--input", "in.jsonl", "--key", "page", *ASK)
    assert done.returncode == 0, done.stderr
    assert "20 records looked at: ok 20" in here("check", tmp_path / "app.toml").stdout


def test_fields_are_told_by_name_and_else_by_their_values(tmp_path):
    records = [
        {"a": f"x{n % 3}", "b": f"y{n}", "c": START_MS + n, "d": [n], "e": None, "f": n % 2 == 0} for n in range(50)
    ]
    guess = guess_fields(str(write(tmp_path / "in.jsonl", records)))
    assert [seen and seen.path for seen in (guess.time, guess.item, guess.key)] == ["c", "b", "a"]
    named = [{**record, "user_id": n % 7, "country": f"z{n % 11}"} for n, record in enumerate(records)]
    guess = guess_fields(str(write(tmp_path / "in.jsonl", named)))
    assert [seen and seen.path for seen in (guess.item, guess.key)] == ["user_id", "country"]


def test_names_that_hold_content_are_not_shown(tmp_path):
    """An object with an entry for each user: its names are what is to be kept secret."""
    records = [{**each, "read": {str(each["user"]): 1, "of": n}} for n, each in enumerate(views())]
    write(tmp_path / "views.jsonl", records)
    done = init(tmp_path / "app.toml", "--input", "views.jsonl", *ASK)
    assert done.returncode == 0, done.stderr
    assert "  read.of: in 200" in done.stderr
    assert "and 90 in less than half of them, whose names are not shown" in done.stderr
    for said in (done.stdout, done.stderr, (tmp_path / "app.toml").read_text()):
        assert SECRET not in said


@pytest.mark.parametrize("name", ["", "two\nlines", "\x1b[31m", "\ud800", 'a "quote"', "back\\", "nul\0"])
def test_no_field_is_proposed_that_a_configuration_cannot_name(tmp_path, name):
    records = [{name: f"k{n % 3}", "in": {name: {name: n % 4}}, "p": f"p{n % 5}", "u": n, "at": START_MS + n}
               for n in range(50)]  # fmt: skip
    guess = guess_fields(str(write(tmp_path / "in.jsonl", records)))
    assert {each.path for each in guess.fields} == {"p", "u", "at"}
    done = init(tmp_path / "app.toml", "--input", "in.jsonl", *ASK)
    assert done.returncode == 0, done.stderr
    assert "50 records looked at: ok 50" in here("check", tmp_path / "app.toml").stdout


@pytest.mark.parametrize(("key", "declared"), [(7, [7, "all"]), ("7", ["7", "all"])])
def test_a_declared_key_is_of_the_type_that_the_field_has(tmp_path, key, declared):
    """Else every event would be dropped, as 7 and "7" are two keys."""
    write(tmp_path / "views.jsonl", [{**each, "page": key} for each in views()])
    keys = ("--key", "page", "--declare", "7", "--declare", "all")
    done = init(tmp_path / "app.toml", "--input", "views.jsonl", *keys, *ASK)
    assert done.returncode == 0, done.stderr
    assert tomllib.loads((tmp_path / "app.toml").read_text())["privacy"]["declared"] == declared
    assert "200 records looked at: ok 200" in here("check", tmp_path / "app.toml").stdout


def test_a_declared_key_of_a_boolean_is_named(tmp_path):
    write(tmp_path / "views.jsonl", views())
    keys = ("--key", "page", "--key", "agent", "--declare", '[true, "x"]')
    done = init(tmp_path / "app.toml", "--input", "views.jsonl", *keys, *ASK)
    assert done.returncode == 2
    assert "--declare: a key of 2 fields is a list in JSON" in done.stderr


@pytest.mark.parametrize("depth", [900, 3000])
def test_deep_objects_harm_nothing(tmp_path, depth):
    deep = b'{"u": 1, "at": 1767225600000, "d": ' + b'{"a": ' * depth + b"1" + b"}" * (depth + 1) + b"\n"
    (tmp_path / "in.jsonl").write_bytes(deep * 3)
    assert guess_fields(str(tmp_path / "in.jsonl")).records == 3


@pytest.mark.parametrize(
    ("content", "said"), [("a,b\n1,2\n", "separated values"), ('[{"a": 1}]', "a JSON array"), ("", "first 0 records")]
)
def test_of_what_has_no_fields_it_says_what_it_looks_like(tmp_path, content, said):
    (tmp_path / "in.txt").write_text(content)
    done = init(tmp_path / "app.toml", "--input", "in.txt", *ASK)
    assert done.returncode == 2
    assert "have no field of a JSON object" in done.stderr
    assert said in done.stderr


def test_what_is_no_record_harms_nothing(tmp_path):
    lines = b'{"page": "p", "user": 1, "at": 1767225600}\n' * 30 + b"\xff\n[1]\n{\n" + b"[" * 100_000 + b"\n"
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(lines))
    guess = guess_fields(str(tmp_path / "in.jsonl.gz"))
    assert guess.records == 34
    assert guess.time is None or guess.time.path == "at"
    (tmp_path / "in.jsonl").write_text("")
    assert guess_fields(str(tmp_path / "in.jsonl")).fields == ()


# On a terminal


def on_a_terminal(folder: Path, answers: str, *options: str) -> tuple[int, str]:
    """(exit code, what is on the screen) of a process whose standard streams are a terminal."""
    master, slave = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "sfm_stream.cli", "init", "app.toml", *options],
        cwd=folder, stdin=slave, stdout=slave, stderr=slave, close_fds=True,
    ) as process:  # fmt: skip
        os.close(slave)
        os.write(master, answers.encode() + b"\x04")  # and no more: whoever asks on is aborted
        shown = b""
        while True:
            try:
                some = os.read(master, 4096)
            except OSError:  # the process has ended, and with it the terminal
                break
            if not some:
                break
            shown += some
        process.wait(PATIENCE_S)
    os.close(master)
    return process.returncode, shown.decode()


def test_on_a_terminal_it_asks_and_proposes(tmp_path):
    """File, key, item, time, unit, as they are proposed; a span that is none and one that is; the budget."""
    write(tmp_path / "views.jsonl", views())
    answers = "views.jsonl\n\n\n\n\n" + "7x\n5\n9\n" + "day\n300\n9000\nn\n" + "free\ninf\n2\n"
    code, shown = on_a_terminal(tmp_path, answers)
    assert code == 0, shown
    assert SECRET not in shown
    assert "Count by which field (several with commas) [page]" in shown
    assert "'7x' is no span" in shown
    assert "'free' is no number above 0" in shown
    assert "'inf' is no number above 0" in shown
    checked = here("check", tmp_path / "app.toml")
    assert "200 records looked at: ok 200" in checked.stdout
    assert load_config(tmp_path / "app.toml").budget.epsilon_per_day <= 2


def test_on_a_terminal_it_asks_only_for_what_is_missing(tmp_path):
    code, shown = on_a_terminal(tmp_path, "views\n", *BROKER[:2], *BROKER[4:], *ASK)
    assert code == 0, shown
    assert load_config(tmp_path / "app.toml").kafka.topic == "views"
