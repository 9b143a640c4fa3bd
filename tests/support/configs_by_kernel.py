"""One configuration with either kernel: a pipeline may change it at every start."""

from __future__ import annotations

from pathlib import Path


def configs_by_kernel(config: Path) -> list[Path]:
    """Copies of a configuration, beside it: one computes in Python, one with the compiled kernel where it is installed.

    Under CI it is: the tests that have the fixture `kernel` fail where it is not.
    """
    copies = []
    for kernel in ("python", "auto"):
        copies.append(config.with_name(f"{config.stem}-{kernel}{config.suffix}"))
        copies[-1].write_text(f'{config.read_text()}\n[worker]\nkernel = "{kernel}"\n')
    return copies
