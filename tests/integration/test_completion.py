"""Shell completion as docs/cli.md sets it up: bash asks the installed program, and is given what can stand there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.patience import PATIENCE_S

from sfm_stream.cli.commands import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs/cli.md").read_text("utf-8")
LINES = dict(re.findall(r"^\| (\w+)[^|]* \| `((?:[^`|]|\\\|)+)` \|", PAGE, re.M))
ENVIRONMENT = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def script() -> str:
    """What the program prints for bash, which is read once."""
    (source,) = re.findall(r'"\$\((.*)\)"', LINES["bash"])
    done = subprocess.run(
        ["bash", "-c", source], env=ENVIRONMENT, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    return done.stdout


def completed(script: str, *words: str) -> list[str]:
    """What bash offers in place of the last word, by the function that it calls at a TAB."""
    (function,) = re.findall(r"complete .*-F (\w+) sfm-stream", script)
    program = (
        f"{script}\nCOMP_WORDS=({shlex.join(['sfm-stream', *words])}); COMP_CWORD={len(words)}\n"
        f"{function} sfm-stream '{words[-1]}' ''\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(
        ["bash", "-c", program],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return done.stdout.split()


def test_bash_completes_the_commands(script: str) -> None:
    assert completed(script, "") == list(COMMANDS)
    assert completed(script, "es") == ["estimate"]
    assert completed(script, "re") == [name for name in COMMANDS if name.startswith("re")]
    assert "--version" in completed(script, "--v")


def test_bash_completes_options_their_values_and_commands_of_a_group(script: str) -> None:
    assert completed(script, "estimate", "app.toml", "--l") == ["--last"]
    assert completed(script, "estimate", "app.toml", "--by", "w") == ["window", "week"]
    assert completed(script, "config", "s") == ["schema", "show"]


def test_the_line_of_bash_registers_the_function(script: str) -> None:
    program = f"{LINES['bash']}; complete -p sfm-stream"
    done = subprocess.run(
        ["bash", "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert "_sfm_stream_completion" in done.stdout


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_are_given_a_script_of_theirs(shell: str) -> None:
    assert f"_SFM_STREAM_COMPLETE={shell}_source sfm-stream" in LINES[shell]
    environment = ENVIRONMENT | {"_SFM_STREAM_COMPLETE": f"{shell}_source"}
    done = subprocess.run(
        ["sfm-stream"], env=environment, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert f"_SFM_STREAM_COMPLETE={shell}_complete" in done.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=done.stdout, text=True, check=True, timeout=PATIENCE_S)


def test_a_tab_loads_no_command() -> None:
    program = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.__stderr__)); "
        "sys.argv = ['sfm-stream']; import sfm_stream.cli.main as main; main.main()"
    )
    asked = {"_SFM_STREAM_COMPLETE": "bash_complete", "COMP_WORDS": "sfm-stream ", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=ENVIRONMENT | asked, capture_output=True, text=True, check=True,
        timeout=PATIENCE_S,
    )  # fmt: skip
    assert "plain,estimate" in done.stdout
    loaded = set(done.stderr.split())
    assert "sfm_stream.cli.main" in loaded
    assert not loaded & {"numpy", "pydantic", "sfm_stream.cli.estimate"}
