"""docs/planning.md: what its commands print, its tables of figures, its options and verdicts are those of the code."""

import re
import shlex
from decimal import Decimal
from pathlib import Path

import pytest
from support.embedded_runs import here, write_config

from sfm_stream.cli.commands import imported
from sfm_stream.planning.forecast import AnswerWorth
from sfm_stream.planning.level import Level, most_releases, noise_factor
from sfm_stream.sketch.shape import SketchShape

PAGE = (Path(__file__).parents[2] / "docs/planning.md").read_text("utf-8")
COMMANDS = re.findall(r"```sh\nsfm-stream (.*?)\n```", PAGE, re.S)
SHOWN = re.findall(r"```text\n(.*?)```", PAGE, re.S)
SHAPE = SketchShape(4096, 24)


def said(text):
    """Lines without what differs in blanks at their ends."""
    return [line.rstrip() for line in text.splitlines()]


def test_the_first_command_prints_the_tables_that_are_shown():
    done = here(*shlex.split(COMMANDS[0]))
    assert done.returncode == 0
    shown = said(SHOWN[0])
    assert said(done.stdout)[: len(shown)] == shown


def test_a_configuration_is_judged_as_it_is_written(tmp_path):
    write_config(tmp_path)
    command = [word.replace("app.toml", str(tmp_path / "app.toml")) for word in shlex.split(COMMANDS[1])]
    assert "day" in here(*command).stdout


def test_a_warning_is_printed_as_it_is_shown(tmp_path):
    config = write_config(tmp_path, size="1h", epsilon=0.5, buckets=4096, levels=24)
    (tmp_path / "in.jsonl").write_text("")
    (shown,) = said(SHOWN[1])
    assert shown in said(here("check", config).stderr)


def test_every_option_is_explained_and_no_other():
    explained = re.findall(r"^\| `(--\w+)", PAGE, re.M) + re.findall(r"^\| `--\w+`, `(--\w+)`", PAGE, re.M)
    options = [parameter.opts[0] for parameter in imported("plan").params]
    assert sorted(explained) == sorted(options)


def test_every_verdict_is_explained_and_no_other():
    assert re.findall(r"^\| `([a-z ]+)` \| [^\n]+ \|$", PAGE, re.M) == [
        str(verdict)
        for verdict in (
            AnswerWorth.OK,
            AnswerWorth.LARGE,
            AnswerWorth.ROUGH,
            AnswerWorth.WITHHELD,
            AnswerWorth.NOISE,
            AnswerWorth.NOT_RELEASED,
        )
    ]
    assert len(AnswerWorth) == 6


def test_the_noise_of_unions():
    rows = re.findall(r"^\| ([124]), (\d+) \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.M)
    assert len(rows) == 7
    for epsilon, releases, *shown in rows:
        for share, text in zip(("0.1", "0.2"), shown, strict=True):
            factor = noise_factor(Decimal(share), Decimal(epsilon), int(releases))
            assert f"{factor:.{len(text.partition('.')[2])}f}" == text


def test_the_largest_unions():
    rows = re.findall(r"^\| ([124]) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.M)
    assert len(rows) == 3
    for epsilon, *shown in rows:
        levels = [Level.of(SHAPE, Decimal(epsilon), Decimal(share)) for share in ("0", "0.1", "0.2")]
        assert [most_releases(SHAPE, level.channel) for level in levels] == list(map(int, shown))


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2"])
@pytest.mark.parametrize("share", ["0.1", "0.5"])
def test_small_numbers_are_known_from_about_seven_by_share_and_epsilon_on(epsilon, share):
    assert "about 7 / (share x epsilon) items" in PAGE
    known = Level.of(SHAPE, Decimal(epsilon), Decimal(share)).smallest_known()
    assert known == pytest.approx(7 / float(Decimal(share) * Decimal(epsilon)), rel=0.05)
