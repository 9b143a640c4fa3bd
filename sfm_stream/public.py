"""What `import sfm_stream` offers, from where it is defined. Loaded when the first of these names is used."""

from sfm_stream.errors import (
    BrokerAway,
    BrokerError,
    BudgetError,
    ConfigError,
    ConflictError,
    EntropyError,
    EpsilonError,
    FormatError,
    IncompatibleError,
    ItemError,
    NothingCounted,
    NothingFound,
    QuestionError,
    SfmStreamError,
    ShapeError,
    StateError,
    StorageError,
    UnusableRecords,
    UsageError,
)
from sfm_stream.estimation.estimate import Estimate, Status, estimate, sum_disjoint
from sfm_stream.estimation.pair import PairEstimate, estimate_pair
from sfm_stream.privacy.flip import flip
from sfm_stream.sketch.hashing import XXH64, ItemHash, keyed_blake2b
from sfm_stream.sketch.merge import merge
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.sfm import NoisyCount, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally

__all__ = [
    "XXH64",
    "BrokerAway",
    "BrokerError",
    "BudgetError",
    "ConfigError",
    "ConflictError",
    "EntropyError",
    "EpsilonError",
    "Estimate",
    "FormatError",
    "IncompatibleError",
    "ItemError",
    "ItemHash",
    "NoisyCount",
    "NothingCounted",
    "NothingFound",
    "PairEstimate",
    "PcsaSketch",
    "QuestionError",
    "SfmSketch",
    "SfmStreamError",
    "ShapeError",
    "SketchShape",
    "StateError",
    "Status",
    "StorageError",
    "Tally",
    "UnusableRecords",
    "UsageError",
    "estimate",
    "estimate_pair",
    "flip",
    "keyed_blake2b",
    "merge",
    "sum_disjoint",
]
