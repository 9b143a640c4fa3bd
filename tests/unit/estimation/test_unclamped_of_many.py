"""Many sketches side by side: each gets what it gets alone, to the last bit.

A roll-up's record must not depend on which keys were due with it. One product of all rows with the weights would round
by the number of rows: six of ten scores then differ in their last bit.
"""

import numpy as np
import pytest

from sfm_stream.estimation import one_sketch
from sfm_stream.estimation.estimate import channel_of
from sfm_stream.estimation.score import invert, unclamped_of_many
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.shape import SketchShape


@pytest.mark.parametrize(("buckets", "levels"), [(64, 12), (4096, 24)])
def test_a_sketch_does_not_depend_on_those_beside_it(buckets, levels):
    shape, channel = SketchShape(buckets, levels), channel_of(flip_threshold_of(2))
    scores, accepted = one_sketch.table(shape, channel, 0.95)
    ones = np.random.default_rng(levels).binomial(buckets, np.linspace(0.6, 0.12, levels), (150, levels))
    sums = one_sketch.level_sums(shape, channel, ones)
    values, errors = unclamped_of_many(scores, sums)
    alone = [unclamped_of_many(scores, sums[i : i + 1]) for i in range(150)]
    assert values.tolist() == [float(value[0]) for value, _ in alone]
    assert errors.tolist() == [float(error[0]) for _, error in alone]
    exact = [invert(scores, accepted, row).unclamped for row in sums]
    assert np.abs(values - exact).max() < errors.max() / 30
