"""Pins what CI and the image install, each file with the hashes of everything the package index lists for a version.

    make requirements

The files hold for every Python and every platform that the project supports, by markers where these differ, and name
no host. tests/project/test_requirements.py holds them against pyproject.toml.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
PYPROJECT = HERE.parent / "pyproject.toml"
NATIVE = HERE.parent / "native" / "pyproject.toml"
HEADER = "# {}\n# Written by `make requirements` from pyproject.toml.\n"
COMPILE = ["pip", "compile", "--quiet", "--universal", "--upgrade", "--generate-hashes", "--no-header", "--no-annotate"]


def pin(name: str, what: str, *arguments: str, wanted: str | None = None) -> None:
    """Writes one file. wanted: requirements, where they are not those that the arguments name."""
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    python = project["requires-python"].removeprefix(">=")
    call = [sys.executable, "-m", "uv", *COMPILE, "--python-version", python, *arguments]
    done = subprocess.run(call, input=wanted, check=True, capture_output=True, text=True, cwd=HERE.parent)
    (HERE / name).write_text(HEADER.format(what) + done.stdout, "utf-8")


def main() -> None:
    """The tests' versions first: what runs in the image is what was tested."""
    tested = ["--constraints", "requirements/test.txt"]
    pin("test.txt", "What `make test` installs beside the package itself.", "pyproject.toml", "--extra", "test")
    pin(
        "run.txt",
        "What the package needs to run and to serve: what the image holds.",
        "pyproject.toml",
        "--extra",
        "serve",
        *tested,
    )
    pin("build.txt", "What builds the package.", "-", *tested, wanted=builders(PYPROJECT))
    pin("native.txt", "What builds the compiled kernel.", "-", wanted=builders(NATIVE))


def builders(pyproject: Path) -> str:
    return "\n".join(tomllib.loads(pyproject.read_text("utf-8"))["build-system"]["requires"])


if __name__ == "__main__":
    main()
