"""docs/presto.md for its tests: the blocks in it, and the table of how far too high old engines count a merge."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "presto.md").read_text()


def blocks(language: str) -> list[str]:
    """Code of this language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


def readme_config() -> str:
    """The configuration that the page's commands are for."""
    config: str
    (config,) = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    return config


BIAS = [
    [cell.strip() for cell in row.split("|")]
    for row in re.findall(r"^\| (\d+ \| (?:[\w.]+ \| ){4}[\w.]+) \|", PAGE, re.M)
]
"""Rows: how many sketches, then how many times too high for each epsilon."""


def bias_epsilon(column: int) -> int:
    """Of a column of figures, from 0."""
    (header,) = re.findall(r"^\| sketches merged \|(.*) \|$", PAGE, re.M)
    return int(re.findall(r"epsilon (\d)", header)[column])


def require_as_said(ratios: Sequence[float], said: str) -> None:
    """Counts over true counts are, in the mean, what the table says."""
    if said == "useless":
        assert not all(0.5 < ratio < 8 for ratio in ratios)
    else:
        assert abs(np.mean(ratios) - float(said)) < 0.02 + 0.2 * abs(float(said) - 1)
