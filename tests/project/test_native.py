"""native/: a distribution of its own, of the same version, of pinned crates."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from test_house_rules import MODULES

from sfm_stream import kernels

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CARGO = tomllib.loads((ROOT / "native" / "Cargo.toml").read_text("utf-8"))
EXACT = re.compile(r"=\d+\.\d+\.\d+")


def loose(manifest: dict[str, object]) -> list[str]:
    """Crates that are not pinned to one version, in any table of dependencies."""
    return [
        name
        for table in ("dependencies", "dev-dependencies", "build-dependencies")
        for name, wanted in manifest.get(table, {}).items()
        if not EXACT.fullmatch(wanted if isinstance(wanted, str) else wanted.get("version", ""))
    ]


def test_both_distributions_have_one_version():
    assert CARGO["package"]["version"] == PROJECT["version"] == kernels.VERSION
    assert PROJECT["optional-dependencies"]["native"] == [f"sfm-stream-native=={PROJECT['version']}"]


def test_crates_are_pinned():
    assert CARGO["dependencies"]
    assert loose(CARGO) == []


@pytest.mark.parametrize("wanted", ["1.0", "^1.0.0", "=1.0", {"version": "1.2.3"}, {"path": "../x"}, "*"])
def test_a_loose_crate_is_found(wanted):
    assert loose({"dependencies": {"one": "=1.2.3", "two": wanted}}) == ["two"]


def test_no_lock_file_and_nothing_built_is_tracked():
    """A lock file names the host that crates come from."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert "native/Cargo.toml" in tracked
    assert [path for path in tracked if path.endswith(".lock") or path.startswith("native/target/")] == []


def test_unsafe_code_is_in_one_file():
    """`unsafe_code` is denied, and allowed where a buffer of Python is read."""
    assert CARGO["lints"]["rust"]["unsafe_code"] == "deny"
    sources = {path.name: path.read_text("utf-8") for path in (ROOT / "native" / "src").rglob("*.rs")}
    unsafe = re.compile(r"unsafe_code|\bunsafe (\{|fn|impl)")
    assert [name for name, source in sources.items() if unsafe.search(source)] == ["buffers.rs"]


def test_the_package_asks_for_no_kernel():
    """It is an extra, and without it the package is complete."""
    assert not [each for each in PROJECT["dependencies"] if "native" in each]
    assert "sfm_stream_native" in MODULES["kernels.py"]


ENTROPY = re.compile(r"RandomState|Hash(?:Map|Set)\b|getrandom|\brand::|fastrand|/dev/u?random")


def test_entropy_is_taken_in_one_file_for_the_seed_of_a_hash():
    """That of the table of open keys: with a seed that is known, keys could be chosen that meet. No coin is drawn."""
    sources = {path.name: path.read_text("utf-8") for path in (ROOT / "native" / "src").rglob("*.rs")}
    assert [name for name, source in sources.items() if ENTROPY.search(source)] == ["key_index.rs"]
    assert "seed: RandomState::new()," in sources["key_index.rs"]
    assert set(ENTROPY.findall(sources["key_index.rs"])) == {"RandomState"}
