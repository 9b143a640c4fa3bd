"""Key tables of either kernel, whichever is chosen for the process."""

from __future__ import annotations

from collections.abc import Container, Iterable

from support.both_kernels import chosen

from sfm_stream import kernels
from sfm_stream.events.key_table import KeyTable
from sfm_stream.types import KeyValue


def table_of(
    kernel: kernels.Kernel, declared: Iterable[KeyValue] | None = None, everywhere: Container[KeyValue] = frozenset()
) -> KeyTable:
    """A table whose keys this kernel holds."""
    with chosen(kernel):
        return KeyTable(declared, everywhere)
