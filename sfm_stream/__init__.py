"""Private distinct counts from event streams.

A data scientist needs no stream at all::

    raw = PcsaSketch(SketchShape(4096, 24)).add(items)   # secret
    private = flip(raw, epsilon=2)                       # public; each flip is a release
    estimate(private)                                    # value, standard error, interval, status
    estimate(Tally.of([monday, tuesday]))                # distinct items over both
    estimate_pair(monday, tuesday)                       # in both, in one of them only
"""

from sfm_stream.estimation.estimate import Estimate, estimate
from sfm_stream.estimation.pair import PairEstimate, estimate_pair
from sfm_stream.privacy.flip import flip
from sfm_stream.sketch.merge import merge
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally

__all__ = [
    "Estimate",
    "PairEstimate",
    "PcsaSketch",
    "SfmSketch",
    "SketchShape",
    "Tally",
    "estimate",
    "estimate_pair",
    "flip",
    "merge",
]
