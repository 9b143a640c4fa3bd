"""Private distinct counts from event streams.

A data scientist needs no stream at all::

    raw = PcsaSketch(SketchShape(4096, 24)).add(items)   # secret
    private = flip(raw, epsilon=2)                       # public; each flip is a release
    estimate(private)                                    # value, standard error, interval, status
    estimate(Tally.of([monday, tuesday]))                # distinct items over both
    estimate_pair(monday, tuesday)                       # in both, in one of them only

The names are loaded when the first of them is used (PEP 562): importing a module of this package, as every start of
the command line does, loads neither numpy nor the estimator. Published records are read by `sfm_stream.wire`, the
paper's other methods are in `sfm_stream.methods`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfm_stream.public import (
        XXH64,
        BrokerAway,
        BrokerError,
        BudgetError,
        ConfigError,
        ConflictError,
        EntropyError,
        EpsilonError,
        Estimate,
        FormatError,
        IncompatibleError,
        ItemError,
        ItemHash,
        NoisyCount,
        NothingCounted,
        NothingFound,
        PairEstimate,
        PcsaSketch,
        QuestionError,
        SfmSketch,
        SfmStreamError,
        ShapeError,
        SketchShape,
        StateError,
        Status,
        StorageError,
        Tally,
        UnusableRecords,
        UsageError,
        estimate,
        estimate_pair,
        flip,
        keyed_blake2b,
        merge,
        sum_disjoint,
    )
else:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from sfm_stream import public

        return getattr(public, name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


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
