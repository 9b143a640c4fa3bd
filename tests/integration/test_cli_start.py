"""What a command loads: nothing that it does not use. The commands are listed without being imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from support.embedded_runs import MINUTE_MS, START_MS, run_here, write_config, write_events
from support.patience import PATIENCE_S

from sfm_stream.cli.commands import COMMANDS, imported
from sfm_stream.cli.main import cli

HEAVY = {"kafka", "numpy", "prometheus_client", "pyarrow", "pydantic", "rich"}
"""Libraries that take a good part of a second to load."""
SHOWN = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.__stderr__)); "


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration on files that has run."""
    folder = tmp_path_factory.mktemp("app")
    events = ({"page": "p", "user": n, "at": START_MS + n * MINUTE_MS} for n in range(120))
    write_events(folder / "in.jsonl", events)
    config = write_config(folder)
    run_here(config)
    return config


def heavy_modules(*arguments: str | Path, code: int = 0) -> set[str]:
    """Which of HEAVY the command has loaded when it ends, in a process of its own."""
    return loaded_by(f"sys.argv = {['sfm-stream', *map(str, arguments)]}; cli.main()", code)


def loaded_by(statements: str, code: int = 0) -> set[str]:
    program = SHOWN + "import sfm_stream.cli.main as cli; " + statements
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == code, done.stderr
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "sfm_stream.cli.main" in loaded
    return HEAVY & loaded


@pytest.mark.parametrize(("argument", "code"), [("--version", 0), ("--help", 0), ("nonsense", 2)])
def test_what_asks_for_no_command_loads_no_library_but_click(argument, code):
    assert heavy_modules(argument, code=code) == set()


def test_the_help_of_commands_loads_their_modules_and_neither_a_client_nor_a_screen():
    """All but generate read a configuration, hence pydantic and numpy. Metrics and clients are for those that run."""
    assert heavy_modules("generate", "--help") == {"numpy"}
    assert heavy_modules("estimate", "--help") == {"numpy", "pydantic"}
    helped = "; ".join(f"cli.cli([{name!r}, '--help'], standalone_mode=False)" for name in COMMANDS)
    assert loaded_by(helped) == {"numpy", "pydantic"}


@pytest.mark.parametrize(
    ("arguments", "screen"),
    [
        (["estimate", "--json"], False),
        (["estimate"], True),
        (["estimate", "--by", "window", "--key", "p", "--json"], False),
        (["inspect", "--json"], False),
        (["inspect"], True),
        (["config", "show"], False),
        (["check", "--json"], False),
        (["check"], True),
    ],
)
def test_a_command_on_files_loads_neither_a_client_nor_metrics_and_a_screen_only_for_tables(app, arguments, screen):
    *names, last = arguments
    assert heavy_modules(*names, last, app) == {"numpy", "pydantic", *(["rich"] if screen else [])}


def test_an_export_loads_pyarrow_for_parquet_only(app, tmp_path):
    assert "pyarrow" not in heavy_modules("export", app, "--out", tmp_path / "out.csv")
    assert "pyarrow" in heavy_modules("export", app, "--out", tmp_path / "out.parquet")


def test_the_list_has_every_command_under_its_name_and_no_other():
    assert {name: imported(name).name for name in COMMANDS} == {name: name for name in COMMANDS}
    assert sorted(COMMANDS) == list(COMMANDS)
    with pytest.raises(LookupError, match="nonsense"):
        imported("nonsense")
    context = click.Context(cli)
    assert cli.list_commands(context) == list(COMMANDS)
    assert cli.get_command(context, "nonsense") is None


@pytest.mark.parametrize("width", [30, 60, 78, 100, 200])
def test_the_list_says_of_each_command_what_its_own_help_says(width):
    """Word for word, in every width of a terminal, as if all commands had been imported."""
    eager = click.Group(commands={name: imported(name) for name in COMMANDS})
    shown = []
    for group in (cli, eager):
        formatter = click.HelpFormatter(width=width)
        group.format_commands(click.Context(group), formatter)
        shown.append(formatter.getvalue())
    assert shown[0] == shown[1]
    assert all(f"\n  {name} " in shown[0] for name in COMMANDS)
