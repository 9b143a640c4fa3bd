"""Both kernels within one test, where a fixture cannot choose: a property draws its examples within one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sfm_stream import kernels

KERNELS: list[kernels.Kernel] = ["python"] if kernels.why_not() else ["python", "native"]
"""Those that can be had here."""


@contextmanager
def chosen(kernel: kernels.Kernel) -> Iterator[None]:
    kernels.choose(kernel)
    try:
        yield
    finally:
        kernels.choose("auto")
