"""Writes docs/licences.md from the metadata of what requirements/*.txt pins, as it is installed here.

make docs
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path

from packaging.markers import Marker

PAGE = Path(__file__).with_name("licences.md")
REQUIREMENTS = PAGE.parents[1] / "requirements"
UPLOT = PAGE.parents[1] / "sfm_stream" / "serve" / "pages" / "static" / "uplot.iife.min.js"
CARGO = PAGE.parents[1] / "native" / "Cargo.toml"
TEXT = """# Licences

Written by `make docs` from the metadata of the packages that `requirements/` pins. sfm-stream itself is under the
Apache License 2.0.

## In the image

What `pip install sfm-stream` brings, and the image that the Dockerfile builds holds, beside Python itself and the
Debian packages of its base:

{run}

Each asks that its notices are passed on; they stand in the `dist-info` folder of the package, and so are in the
image. numpy's wheels for Linux hold OpenBLAS (BSD-3-Clause) and two runtime libraries of GCC: libgfortran
(GPL-3.0-or-later with the GCC Runtime Library Exception, which leaves what uses it free) and, in some versions,
libquadmath (LGPL-2.1-or-later).

**crc32c** is under the GNU Lesser General Public License, version 2.1 or later. It computes the checksums of Kafka's
batches. sfm-stream uses it unchanged, through kafka-python, as a library in a file of its own; nothing of it is
compiled into anything else, so the licence of sfm-stream is not affected. Who only runs sfm-stream or the image has
nothing to do. Who *passes on* an image passes on a copy of crc32c (and of libquadmath), and by that licence has to
- keep its licence text and its notices, which are in the image;
- give its source along, or offer it: the source archive of the version in `requirements/run.txt`, whose hash is one
  of those that stand there;
- let those who get the image change the library and run sfm-stream with what they changed. Another build that is
  installed into `/opt/sfm-stream` of an image built on this one does that.

An image without crc32c: take it out of `requirements/run.txt`, and `[crc32c,` out of the dependency on kafka-python in
`pyproject.toml`. kafka-python then computes the checksums in Python, more slowly.

## In the compiled kernel

What `native/Cargo.toml` pins, which is compiled into the library of `sfm-stream-native`; the image holds it too:

{crates}

They bring further crates, all under the same kinds of terms;
`cargo tree --manifest-path native/Cargo.toml -f '{{p}} {{l}}'`
lists every one. Their notices are in their sources, and go along with a library or an image that is passed on.

## In the page

`sfm-stream serve` shows its pages without anything from elsewhere. One library of others is in the package for that,
unchanged: **uPlot** {uplot} (MIT), which draws a trend that can be zoomed, from the npm package `uplot`. Its files are
`uplot.iife.min.js` and `uplot.min.css` in `sfm_stream/serve/pages/static/`, with its licence beside them,
`uplot.LICENSE`, which goes along with the wheel and the image.

## For tests only

What `make test` installs besides, on a developer's machine and no other:

{test}
"""
CRATES = {
    "crc32c": "MIT OR Apache-2.0",
    "flate2": "MIT OR Apache-2.0",
    "lz4_flex": "MIT",
    "memchr": "Unlicense OR MIT",
    "pyo3": "MIT OR Apache-2.0",
    "snap": "BSD-3-Clause",
    "xxhash-rust": "BSL-1.0",
    "wide": "Zlib OR Apache-2.0 OR MIT",
    "zstd": "BSD-3-Clause",
}
"""As their Cargo.toml has it; they are in no metadata of Python."""
PIN = re.compile(r"^([a-z0-9-]+)==\S+(?: ; (.+?))? \\$", re.M)
LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
CLASSIFIERS = {
    "BSD License": "BSD",
    "MIT License": "MIT",
    "Apache Software License": "Apache-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""What the classifiers of older packages mean."""


def pinned(name: str) -> list[str]:
    """Names of packages in a requirements file that Linux installs, sorted."""
    text = (REQUIREMENTS / name).read_text("utf-8")
    return sorted({package for package, marker in PIN.findall(text) if not marker or Marker(marker).evaluate(LINUX)})


def licence_of(package: str) -> str:
    """An SPDX expression where the package has one, or else what it says. Raises ValueError if it says nothing."""
    said = metadata(package)
    if expression := said.get("License-Expression"):
        return str(expression)
    written = str(said.get("License") or "").strip()
    if written and "\n" not in written and len(written) < 40:
        return written
    names = [line.rsplit(" :: ", 1)[1] for line in said.get_all("Classifier") or [] if line.startswith("License :: ")]
    if not names:
        raise ValueError(f"{package} names no licence in its metadata: look at it, and say so here")
    return ", ".join(CLASSIFIERS.get(name, name) for name in names)


def rows(packages: list[str]) -> Iterator[str]:
    yield "| package | licence |"
    yield "| --- | --- |"
    for package in packages:
        yield f"| {package} | {licence_of(package)} |"


def crate_rows() -> Iterator[str]:
    """Raises KeyError for a crate whose licence is not written here."""
    yield "| crate | version | licence |"
    yield "| --- | --- | --- |"
    for name, wanted in tomllib.loads(CARGO.read_text("utf-8"))["dependencies"].items():
        version = wanted if isinstance(wanted, str) else wanted["version"]
        yield f"| {name} | {version.removeprefix('=')} | {CRATES[name]} |"


def uplot_version() -> str:
    """Of the copy in the package, as its first line says."""
    found = re.search(r"uPlot \(v([0-9.]+)\)", UPLOT.read_text("utf-8"))
    if found is None:
        raise ValueError(f"{UPLOT.name} does not say its version")
    return found[1]


def page() -> str:
    """The whole page."""
    run = pinned("run.txt")
    test = [package for package in pinned("test.txt") if package not in run]
    parts = {"uplot": uplot_version(), "crates": "\n".join(crate_rows())}
    return TEXT.format(run="\n".join(rows(run)), test="\n".join(rows(test)), **parts)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
