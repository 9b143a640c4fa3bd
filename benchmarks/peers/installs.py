"""What the peers need, installed apart from the project: environments and jars in a folder of the user's cache.

A folder is marked once it is whole, and its name changes with the versions that are asked for.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

HERE = Path(__file__).parent
CACHE = Path.home() / ".cache/sfm-stream/peers"


class CannotInstallError(Exception):
    """What a peer needs cannot be had here; the message says why."""


def environment(name: str) -> Path:
    """The Python of an environment with what requirements-NAME.txt pins. Raises CannotInstallError."""
    wanted = HERE / f"requirements-{name}.txt"

    def make(folder: Path) -> None:
        _run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
        _run([*pip, "-r", str(wanted)])

    version = "".join(map(str, sys.version_info[:2]))
    return _installed(f"{name}-py{version}", wanted.read_bytes(), make) / "bin/python"


def java_classes() -> str:
    """The class path of the Java peer, compiled. Raises CannotInstallError."""
    if not (maven := shutil.which("mvn")) or not shutil.which("java"):
        raise CannotInstallError("it needs Java 17 and Maven")
    source = HERE / "java/src/main/java/DistinctUsers.java"
    pom = HERE / "java/pom.xml"

    def make(folder: Path) -> None:
        goals = ["compile", "dependency:copy-dependencies", "-DincludeScope=runtime"]
        places = [f"-Dbuild.folder={folder}", f"-DoutputDirectory={folder}/jars"]
        _run([maven, "-q", "-B", "-f", str(pom), *goals, *places])

    folder = _installed("java", source.read_bytes() + pom.read_bytes(), make)
    return f"{folder}/classes:{folder}/jars/*"


def versions(python: Path | str, packages: list[str]) -> dict[str, str]:
    """Of packages that an environment has."""
    ask = "import json, sys; from importlib.metadata import version as of; "
    ask += "print(json.dumps({name: of(name) for name in sys.argv[1:]}))"
    said = subprocess.run([str(python), "-c", ask, *packages], capture_output=True, text=True, check=True).stdout
    return dict(json.loads(said))


def java_versions(class_path: str) -> dict[str, str]:
    """Of the jars that the Java peer is named for, and of Java."""
    jars = Path(class_path.split(":")[1]).parent
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr  # noqa: S607 - found as the shell finds it
    found = {"java": said.splitlines()[0].split('"')[1]}
    for name in ("kafka-streams", "datasketches-java"):
        (jar,) = jars.glob(f"{name}-*.jar")
        found[name] = jar.stem.removeprefix(f"{name}-")
    return found


def _installed(name: str, asked: bytes, make: Callable[[Path], None]) -> Path:
    folder = CACHE / f"{name}-{hashlib.sha256(asked).hexdigest()[:12]}"
    done = folder / ".complete"
    if not done.exists():
        click.echo(f"installing {name} into {folder}")
        # An environment knows its own path, so it is made in place and marked, and not renamed.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder)
        done.touch()
    return folder


def _run(command: list[str]) -> None:
    with tempfile.TemporaryFile("w+") as said:
        if subprocess.run(command, stdout=said, stderr=said, stdin=subprocess.DEVNULL).returncode:
            said.seek(0)
            raise CannotInstallError(f"{' '.join(command)[:120]}: {said.read()[-800:]}")
