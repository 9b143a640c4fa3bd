"""docs/methods.md: its examples run, and its table of errors is that of the formula."""

import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.paper.standard_errors import standard_errors
from sfm_stream.estimation.estimate import channel_of
from sfm_stream.estimation.pair import _Model
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.shape import SketchShape

PAGE = (Path(__file__).parents[2] / "docs/methods.md").read_text("utf-8")
ACCURACY = (Path(__file__).parents[2] / "docs/accuracy.md").read_text("utf-8")
SHAPE = SketchShape(4096, 24)


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE, re.S))
def test_examples_run(block, capsys):
    """Each prints what it says, or only estimates that are worth something."""
    exec(compile(block, "docs/methods.md", "exec"), {})  # noqa: S102 -- the page's own code
    lines = capsys.readouterr().out.splitlines()
    if said := re.search(r"print\(.*\)  # (.+)$", block, re.M):
        assert lines == said[1].split()
    else:
        assert lines
        assert all("Status.OK" in line for line in lines)


def errors_by_formula(epsilon, shared):
    """Standard errors of (both, only first) for two sets of 100,000."""
    channel = channel_of(flip_threshold_of(epsilon))
    model, at = _Model(SHAPE, channel, channel), np.array([shared, 1e5 - shared, 1e5 - shared])
    weights, information = model.weights(at)
    inverse = np.linalg.inv(information)
    return np.sqrt(np.diag(inverse @ model.score_covariance(weights, at) @ inverse)[:2]).tolist()


@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_the_table_of_errors(epsilon):
    [line] = re.findall(rf"^\| {epsilon} \| (.+?) \|$", PAGE, re.M)
    shown = [int(cell.replace(",", "")) for cell in line.split(" | ")]
    wanted = [standard_errors(SHAPE, channel_of(flip_threshold_of(epsilon)), 1e5)[1]]
    for shared in (50_000, 10_000, 1_000):
        wanted += errors_by_formula(epsilon, shared)
    assert shown == [10 * round(value / 10) for value in wanted]


def test_measured_errors_are_those_of_the_formula():
    """docs/accuracy.md: 600 trials, so that an RMSE is known to 2.9 % and a coverage to 0.9 points; 4 of these."""
    rows = re.findall(r"^\| ([124]) \| (\d+) \| \d+ \| (\d.*) \| (\d.*) \| (\d+) \|$", ACCURACY, re.M)
    assert len(rows) == 9
    for epsilon, shared, *parts, alone in rows:
        for part, wanted in zip(parts, errors_by_formula(int(epsilon), int(shared)), strict=True):
            rmse, stated, covered = map(float, part.split(" / "))
            assert rmse == pytest.approx(wanted, rel=0.12)
            assert stated == pytest.approx(wanted, rel=0.02)
            assert abs(covered - 95) < 3.6
        assert 1.4 <= float(alone) / float(parts[0].split(" / ")[0]) <= 1.95
