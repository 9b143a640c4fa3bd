"""A run that counts nothing, or loses much, says so: by its exit code, on standard error, and `check` beforehand."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.embedded_runs import MINUTE_MS, START_MS, command, write_config

ROWS = [{"page": f"p{n % 3}", "user": f"u{n % 40}", "at": START_MS + n * MINUTE_MS // 40} for n in range(400)]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)


def as_csv():
    out = io.StringIO()
    writer = csv.DictWriter(out, list(ROWS[0]))
    writer.writeheader()
    writer.writerows(ROWS)
    return out.getvalue().encode()


def as_zip():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("in.jsonl", LINES)
    return out.getvalue()


def as_parquet():
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), out)
    return out.getvalue()


FOREIGN = {
    "CSV": as_csv(),
    "a JSON array": json.dumps(ROWS).encode(),
    "JSON over several lines": b"\n".join(json.dumps(row, indent=1).encode() for row in ROWS),
    "carriage returns": LINES.replace(b"\n", b"\r"),
    "UTF-16": LINES.decode().encode("utf-16"),
    "a zip archive": as_zip(),
    "a Parquet file": as_parquet(),
}
ORDERS = pytest.mark.parametrize("complete", ["true", "false"], ids=["whole", "in time"])


def written(folder, data, start=False, **settings):
    """A configuration over this input, without a window.start unless one is asked for: the data decides then."""
    (folder / "in.jsonl").write_bytes(data)
    config = write_config(folder, **settings)
    if not start:
        config.write_text(re.sub(r"(?m)^start = .*\n", "", config.read_text()))
    return config


@ORDERS
@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_that_is_no_json_lines_ends_with_a_code_of_its_own(tmp_path, name, complete):
    config = written(tmp_path, FOREIGN[name], complete=complete)
    done = command("run", config)
    assert done.returncode == 8, done.stderr
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert f"The input looks like {name}" in said.replace("a table of separated values (CSV)", "CSV").replace(
        "UTF-16 text", "UTF-16"
    ).replace("lines that end in carriage", "carriage")
    assert "was counted:" in said or "not one whole line" in said
    assert "u7" not in said
    assert "p1" not in said
    checked = command("check", config)
    assert checked.returncode == 4
    assert "The input looks like" in checked.stdout


@ORDERS
def test_what_never_has_a_time_stops_at_the_limit_from_the_first_record_on(tmp_path, complete):
    lines = [json.dumps(row | {"at": "2026-01-01T00:00:00"}).encode() for row in ROWS]
    config = written(tmp_path, b"\n".join(lines) + b"\n", complete=complete, limits="max_consecutive_invalid = 100")
    done = command("run", config)
    assert done.returncode == 4, done.stderr
    assert "limits.max_consecutive_invalid = 100" in done.stderr
    assert "mostly time_type" in done.stderr


def test_the_limit_names_what_the_file_looks_like(tmp_path):
    config = written(tmp_path, as_csv(), complete="true", limits="max_consecutive_invalid = 100")
    done = command("run", config)
    assert done.returncode == 4
    assert "looks like a table of separated values (CSV)" in done.stderr


def test_records_before_the_first_time_and_behind_it_are_one_run(tmp_path):
    """The first record with a time begins the counting, and is itself not usable."""
    lines = [b"{}"] * 60 + [json.dumps({"at": START_MS}).encode()] + [b"{}"] * 60 + [LINES]
    config = written(tmp_path, b"\n".join(lines), complete="false", limits="max_consecutive_invalid = 100")
    assert command("run", config).returncode == 4
    config.write_text(config.read_text().replace("= 100", "= 121"))
    assert command("run", config).returncode == 0


@pytest.mark.parametrize(("bad", "warned"), [(20, False), (21, False), (22, True)])
def test_a_run_that_drops_more_than_a_share_warns_with_the_reasons(tmp_path, bad, warned):
    """5 % of 421 records are 21.05."""
    spoiled = [b'{"at":%d,"page":"p1"}' % START_MS] * (bad - 2) + [b"no JSON", b"{}"]
    config = written(tmp_path, LINES + b"\n".join(spoiled) + b"\n", complete="true")
    done = command("run", config)
    assert done.returncode == 0, done.stderr
    assert ("warning:" in done.stderr) == warned
    if warned:
        assert f"{bad} of {400 + bad} records (5%) were dropped, mostly: item_missing {bad - 2}" in done.stderr


def test_nothing_to_read_is_no_failure(tmp_path):
    config = written(tmp_path, b"\n\n", complete="false")
    assert command("run", config).returncode == 0
    (tmp_path / "in.jsonl").write_bytes(LINES)
    assert command("run", config).returncode == 0


def test_check_says_how_many_would_be_late(tmp_path):
    """As many as a run then drops, in order of time; none where the file is sorted, or counted whole."""
    spread = [json.dumps(row | {"at": START_MS + n * MINUTE_MS}).encode() + b"\n" for n, row in enumerate(ROWS)]
    shuffled = b"".join(spread[n * 7 % 400] for n in range(400))

    def late(config):
        return json.loads(command("check", config, "--json").stdout)["sample"]["late"]

    assert late(written(tmp_path, b"".join(spread), complete="false")) == 0
    assert late(written(tmp_path, shuffled, complete="true")) == 0
    config = written(tmp_path, shuffled, complete="false", start=True)
    expected = late(config)
    assert 0 < expected < 400
    assert f"{expected} of them come too late" in command("check", config).stdout
    assert json.loads(command("run", config, "--json").stdout)["dropped"]["late"] == expected
