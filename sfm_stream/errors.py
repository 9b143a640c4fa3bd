"""Every error sfm-stream raises, in one tree.

::

    SfmStreamError
    ├── UsageError            the caller passed a value this function cannot take (also a ValueError)
    │   ├── ShapeError        buckets or levels out of range
    │   ├── ItemError         an item of a type or size that has no canonical encoding
    │   ├── QuestionError     a question about published records that makes no sense; names the wrong part
    │   └── EpsilonError      an epsilon or delta outside the supported range
    ├── IncompatibleError     sketches that must not be combined: shape, hash, epsilon or mechanism differ
    ├── FormatError           bytes that a strict reader refuses; names the field
    ├── ConfigError           a configuration that must not run; names each wrong setting
    │   └── BudgetError       a day may cost more epsilon than the configuration itself allows
    ├── EntropyError          there is no randomness; nothing was released
    ├── BrokerError           the cluster cannot be reached, refuses this client, or does not answer
    │   └── BrokerAway        it does not answer now; a running worker asks again
    ├── NothingCounted        an input was read to its end, and no record of it was counted
    ├── NothingFound          nothing that was published answers the question
    ├── StorageError          a disk is full, or fails in a way that may pass; starting again may help
    ├── StateError            going on could lose, repeat or distort a release: the worker stops (fail closed)
    │   └── UnusableRecords   too many records in a row cannot be counted
    └── ConflictError         two different payloads for one release id: a privacy incident

Expected outcomes (a dropped record, an uninformative estimate) are values, not errors. Each class carries the
exit code that the command line ends with; docs/operating.md lists them.
"""

from __future__ import annotations


class SfmStreamError(Exception):
    """Base of all errors of this package."""

    exit_code = 1


class UsageError(SfmStreamError, ValueError):
    """An argument that the function does not accept."""

    exit_code = 2


class ShapeError(UsageError):
    """A number of buckets or levels outside the supported range."""


class ItemError(UsageError):
    """An item that has no canonical encoding. The error never holds the item itself."""


class EpsilonError(UsageError):
    """An epsilon or delta outside the supported range."""


class QuestionError(UsageError):
    """A question about published records that makes no sense.

    problem: what is wrong. part: the wrong part of the question, as the command line writes it (--from); empty where
    the parts do not fit together.
    """

    def __init__(self, problem: str, part: str = "") -> None:
        super().__init__(f"{part}: {problem}" if part else problem)
        self.problem = problem
        self.part = part


class IncompatibleError(SfmStreamError, ValueError):
    """Sketches that differ in shape, hash, epsilon or mechanism and so cannot be combined."""


class FormatError(SfmStreamError, ValueError):
    """Bytes that a strict reader refuses.

    field: the wrong field of the format. problem: what is wrong with it. place: where the bytes are stored, if known.
    """

    def __init__(self, field: str, problem: str, place: str = "") -> None:
        super().__init__(f"{place}: {field}: {problem}" if place else f"{field}: {problem}")
        self.field = field
        self.problem = problem
        self.place = place


class ConfigError(SfmStreamError):
    """A configuration that must not run. problems: one line each, which begins with the path of the setting."""

    exit_code = 3

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class BudgetError(ConfigError):
    """The most that an item can lose in a day exceeds `privacy.max_epsilon_per_item_day`."""


class EntropyError(SfmStreamError):
    """The source of randomness failed, or gave too few bytes."""

    exit_code = 5


class NothingCounted(SfmStreamError):
    """An input was read to its end, and no record of it was counted."""

    exit_code = 8


class NothingFound(SfmStreamError):
    """Nothing that was published answers the question: not for this key, not for this span, or nothing at all."""

    exit_code = 9


class StateError(SfmStreamError):
    """The stored state, the input and the configuration do not fit together, or a limit is reached."""

    exit_code = 4


class UnusableRecords(StateError):
    """More records in a row than a limit allows are unreadable or in the wrong partition."""


class BrokerError(SfmStreamError):
    """The cluster does not answer, refuses this client, or cannot do what it is asked. Starting again loses nothing."""

    exit_code = 7


class BrokerAway(BrokerError):
    """The cluster did not answer in time. It may do so later, or another broker may."""


class StorageError(SfmStreamError):
    """A disk is full, or fails in a way that may pass. Starting again loses nothing that was committed."""

    exit_code = 7


class ConflictError(SfmStreamError):
    """A release id has two different payloads: a privacy incident."""

    exit_code = 6
