"""The randomized merge of private sketches (paper, thm. sym-merge-general), any number of them in one step.

With q* = q(eps*), p* = 1 - q* and r_i = q_i / p_i = e^-eps_i, the closed form of the paper's Kronecker product is

    Pr(out = 1 | bits) = p* (1 - product over the ones of (-r_i))

which is exactly 0 where no input has a one. A merge is post-processing, so its coins need not be secret. They come from
SHAKE-256 over the inputs: the same inputs give the same bytes on every machine.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count as counting

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import UsageError
from sfm_stream.sketch.agreement import require_same
from sfm_stream.sketch.bernoulli import Digits
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.sketch.tally import Tally, require_disjoint
from sfm_stream.sketch.varied_coins import draw


def merge(sketches: Iterable[SfmSketch], digits: Digits | None = None) -> SfmSketch:
    """The private sketch of the union, with flip probability q(eps*), eps* = -log(1 - prod(1 - e^-eps_i)).

    The inputs may differ in epsilon, not in shape or hash. Their order does not matter. eps* measures the noise of the
    result; it is not a privacy parameter. The merge of a single input is that input. Raises IncompatibleError;
    UsageError if there is no input, or the same release twice.
    """
    by_noise: dict[int, list[SfmSketch]] = {}
    for sketch in sketches:
        by_noise.setdefault(sketch.flip_threshold, []).append(sketch)
    return merge_tallies([Tally.of(by_noise[threshold]) for threshold in sorted(by_noise)], digits)


def merge_tallies(tallies: Sequence[Tally], digits: Digits | None = None) -> SfmSketch:
    """As `merge`, of tallies with one flip threshold each: the closed form needs only the number of ones in a cell."""
    if not tallies:
        raise UsageError("merge: no sketches")
    first = tallies[0]
    for other in tallies[1:]:
        require_same("merge", first, other, same_flip_threshold=False)
    require_disjoint("merge", tallies)
    if len(tallies) == 1 and first.releases == 1:
        return SfmSketch(first.shape, first.flip_threshold, first.hash, _packed(first.counts.reshape(-1) > 0))
    threshold = merged_threshold([tally.flip_threshold for tally in tallies for _ in range(tally.releases)])
    groups = [(tally.flip_threshold, tally.releases, tally.counts.reshape(-1)) for tally in tallies]
    ones = merged_ones(groups, threshold, digits, [tally.digest() for tally in tallies])
    return SfmSketch(first.shape, threshold, first.hash, _packed(ones))


def merged_ones(
    groups: Sequence[tuple[int, int, NDArray[np.integer]]],
    threshold: int,
    digits: Digits | None,
    digests: Sequence[bytes],
) -> NDArray[np.bool_]:
    """Shape (cells,): the merged bits.

    groups: one for each flip threshold of the inputs: the threshold, how many releases have it, and shape (cells,), how
    many of them show a one. threshold: of the merge, see merged_threshold. digests: of the inputs; the coins follow
    from them where `digits` is None.
    """
    product = np.ones(len(groups[0][2]))
    for flip_threshold, releases, counts in groups:
        powers = (-(flip_threshold / (GRID - flip_threshold))) ** np.arange(releases + 1)
        product *= powers[counts]
    return draw(len(product), _thresholds(product, threshold), digits or _shake(digests))


def merge_tally(tally: Tally) -> SfmSketch:
    """The merge of all releases of a tally."""
    return merge_tallies([tally])


def merged_threshold(flip_thresholds: Sequence[int]) -> int:
    """The flip threshold of the merge: q* 2^64 rounded up, from exact rationals; at most 2^63.

    q* = (1 - prod) / (2 - prod) with prod = prod (1 - e^-eps_i) = prod (2^64 - 2 t_i) / (2^64 - t_i), t_i the
    thresholds of the inputs.
    """
    above, below = 1, 1
    for threshold, releases in Counter(flip_thresholds).items():
        above *= (GRID - 2 * threshold) ** releases
        below *= (GRID - threshold) ** releases
    return -(-GRID * (below - above) // (2 * below - above))


def one_probability(product: NDArray[np.float64], threshold: int) -> NDArray[np.float64]:
    """Pr(out = 1), given the product of -e^-eps_i over the inputs that show a one; it is 1.0 where none does."""
    return (1.0 - threshold / GRID) * (1.0 - product)


def _thresholds(product: NDArray[np.float64], threshold: int) -> NDArray[np.uint64]:
    # The largest threshold is the float below 2^64. The closed form is below 1 for every epsilon in range.
    scaled = np.minimum(one_probability(product, threshold) * float(GRID), float(GRID - 2048))
    return scaled.astype(np.uint64)


def _packed(ones: NDArray[np.bool_]) -> bytes:
    return np.packbits(ones, bitorder="little").tobytes()


def _shake(digests: Sequence[bytes]) -> Digits:
    """Digits from SHAKE-256 over the digests. The same inputs, in any order, give the same digits."""
    seed = b"".join(sorted(digests))
    rounds = counting()

    def digits(wanted: int) -> NDArray[np.uint8]:
        stream = hashlib.shake_256(next(rounds).to_bytes(8, "big") + seed)
        return np.frombuffer(stream.digest(wanted), np.uint8)

    return digits
