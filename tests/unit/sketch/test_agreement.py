"""What must agree before sketches are combined."""

import dataclasses

import pytest

from sfm_stream.errors import IncompatibleError
from sfm_stream.sketch.agreement import require_same
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.shape import SketchShape

SKETCH = SfmSketch(SketchShape(16, 4), 1 << 62, "xxh64", bytes(8))


def test_require_same_names_the_first_difference():
    other = dataclasses.replace(SKETCH, flip_threshold=5)
    require_same("x", SKETCH, other, same_flip_threshold=False)
    with pytest.raises(IncompatibleError, match=r"^x: flip probability k differs, 4611686018427387904 against 5$"):
        require_same("x", SKETCH, other, same_flip_threshold=True)
    with pytest.raises(IncompatibleError, match=r"^x: hash differs, xxh64 against other$"):
        require_same("x", SKETCH, dataclasses.replace(other, hash="other"), same_flip_threshold=True)
    with pytest.raises(IncompatibleError, match=r"^x: shape differs, 16x4 against 32x2$"):
        require_same(
            "x", SKETCH, dataclasses.replace(other, hash="other", shape=SketchShape(32, 2)), same_flip_threshold=True
        )
