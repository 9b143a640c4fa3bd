"""The wheel by itself: built from what the image is built from, installed where the source is not to be found."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]


def done(*call: str | Path, folder: Path) -> str:
    """What a program prints. It must end with 0, and has nothing of this process's search path."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    ended = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.returncode == 0, (call, ended.stdout, ended.stderr)
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by what is installed here, from a copy of the files that the Dockerfile copies."""
    folder = tmp_path_factory.mktemp("wheel")
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text("utf-8"), re.M)
    for name in " ".join(copied).split():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / "source" / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / "source" / name)
    done(*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, folder / "source", folder=folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment with the wheel in it, and the libraries of this one."""
    home = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    done(*PIP, "--python", python, "install", "--no-deps", "--no-index", wheel, folder=home)
    (site,) = home.glob("lib/python*/site-packages")
    # A path in a .pth file is searched, but the .pth files in it are not read: so an editable install is not seen.
    (site / "libraries.pth").write_text("\n".join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}))
    return home / "bin"


def test_it_holds_the_package_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "sfm_stream").rglob("*.py")}
    folders = [ROOT / "sfm_stream" / "serve" / "pages" / name for name in ("templates", "static")]
    pages = {path.relative_to(ROOT).as_posix() for folder in folders for path in folder.iterdir()}
    assert modules | pages | {"sfm_stream/py.typed"} == {name for name in names if ".dist-info/" not in name}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_source_is_not_found(programs, tmp_path):
    where = done(programs / "python", "-c", "import sfm_stream; print(sfm_stream.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(programs.parent)
    assert (Path(where.strip()).parent / "py.typed").is_file()


def test_it_says_its_version(programs, tmp_path):
    assert PROJECT["version"] in done(programs / "sfm-stream", "--version", folder=tmp_path)


def test_the_notebook_of_the_readme_runs(programs, tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", README, re.S)
    assert "95 % interval" in done(programs / "python", "-c", code, folder=tmp_path)


def test_it_counts_a_file(programs, tmp_path):
    (config,) = re.findall(r"```toml\n(.*?)```", README, re.S)
    (tmp_path / "app.toml").write_text(config)
    done(programs / "sfm-stream", "generate", "--events", "5000", "--output", "views.jsonl", folder=tmp_path)
    report = json.loads(done(programs / "sfm-stream", "run", "app.toml", "--json", folder=tmp_path))
    assert report["counted"] > 2500
    assert "95 % interval" in done(programs / "sfm-stream", "estimate", "app.toml", folder=tmp_path)
