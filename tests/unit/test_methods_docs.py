"""docs/methods.md: its examples run, and its table of errors is that of the formula."""

import re
from pathlib import Path

import numpy as np
import pytest

from sfm_stream.privacy.epsilon import flip_threshold
from sfm_stream.sketch.estimate import channel_of
from sfm_stream.sketch.likelihood import standard_errors
from sfm_stream.sketch.pair import _Model
from sfm_stream.sketch.shape import SketchShape

PAGE = (Path(__file__).parents[2] / "docs/methods.md").read_text("utf-8")
SHAPE = SketchShape(4096, 24)


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE, re.S))
def test_examples_run(block, capsys):
    exec(compile(block, "docs/methods.md", "exec"), {})
    assert "Status.OK" in capsys.readouterr().out


@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_the_table_of_errors(epsilon):
    [line] = re.findall(rf"^\| {epsilon} \| (.+?) \|$", PAGE, re.M)
    shown = [int(cell.replace(",", "")) for cell in line.split(" | ")]
    channel = channel_of(flip_threshold(epsilon))
    model, wanted = _Model(SHAPE, channel, channel), [standard_errors(SHAPE, channel, 1e5)[1]]
    for shared in (50_000, 10_000, 1_000):
        at = np.array([shared, 1e5 - shared, 1e5 - shared])
        weights, information = model.weights(at)
        inverse = np.linalg.inv(information)
        covariance = inverse @ model.score_covariance(weights, at) @ inverse
        wanted += np.sqrt(np.diag(covariance)[:2]).tolist()
    assert shown == [10 * round(value / 10) for value in wanted]
