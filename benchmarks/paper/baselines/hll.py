"""HyperLogLog from Apache DataSketches, not private.

It hashes with MurmurHash3, not with xxHash64. Its own estimate of a sketch that has only been updated is the
"historical inverse probability" one, of relative error 0.83 / sqrt(B), which no merge survives. The paper means the
estimator of Flajolet et al. (2007), of error 1.04 / sqrt(B); DataSketches uses such a "composite" one for
whatever came out of a merge, and so do we.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from datasketches import hll_sketch, hll_union, tgt_hll_type
from numpy.typing import NDArray

MIN_LG_BUCKETS = 7


def estimates(items: NDArray[np.int64], lg_buckets: Sequence[int]) -> list[float]:
    """For each lg_buckets the composite estimate of a sketch of 2^lg_buckets registers that saw these items.

    Only the largest sketch is fed. A smaller one is it folded, register for register what feeding would have given.
    """
    top = hll_sketch(max(lg_buckets), tgt_hll_type.HLL_8)
    update = top.update
    for item in items.tolist():
        update(item)
    return [merged(folded(top, lg)).get_estimate() for lg in lg_buckets]


def folded(sketch: hll_sketch, lg_buckets: int) -> hll_sketch:
    """The sketch brought down to 2^lg_buckets registers."""
    return _union(lg_buckets, sketch)


def merged(sketch: hll_sketch) -> hll_sketch:
    """The same registers as the outcome of a merge, with itself: what makes DataSketches estimate by registers."""
    return _union(sketch.lg_config_k, sketch, sketch)


def _union(lg_buckets: int, *sketches: hll_sketch) -> hll_sketch:
    union = hll_union(lg_buckets)
    for sketch in sketches:
        union.update(sketch)
    return union.get_result(tgt_hll_type.HLL_8)
