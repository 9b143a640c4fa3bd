"""Every error sfm-stream raises, in one tree.

::

    SfmStreamError
    ├── UsageError            the caller passed a value this function cannot take (also a ValueError)
    │   ├── ShapeError        buckets or levels out of range
    │   ├── ItemError         an item of a type or size that has no canonical encoding
    │   ├── QuestionError     a question to published records that has no meaning; names the part of it
    │   └── EpsilonError      an epsilon or delta outside the supported range
    ├── IncompatibleError     sketches that must not be combined: shape, hash, epsilon or mechanism differ
    ├── FormatError           bytes that are not what a strict reader demands; names the field
    ├── ConfigError           a configuration that must not run; names the setting
    │   └── BudgetError       the worst case of a configuration is above its own limit
    ├── EntropyError          the operating system gave no randomness; nothing was released
    ├── BrokerError           the cluster cannot be reached, refuses this client, or does not answer
    │   └── BrokerAway        it does not answer now; asking again may help, and a running worker does
    ├── NothingCounted        an input was read and nothing of it was counted
    ├── NothingFound          a question to which nothing that is published is an answer
    ├── StorageError          the disk is full, or fails in a way that may pass; starting again may help
    ├── StateError            going on would lose, double or distort a release: the worker stops (fail closed)
    │   └── UnusableRecords   too many records in a row that no rule can read
    └── ConflictError         two different payloads for one release id: a privacy incident

Expected outcomes (a dropped record, an uninformative estimate) are values, not errors. Each class carries the
exit code that the command line ends with; docs/operating.md lists them.
"""

from __future__ import annotations


class SfmStreamError(Exception):
    """Base of all errors of this package."""

    exit_code = 1


class UsageError(SfmStreamError, ValueError):
    """A value outside what the function takes."""

    exit_code = 2


class ShapeError(UsageError):
    """Buckets or levels outside the supported range."""


class ItemError(UsageError):
    """An item that has no canonical encoding. Never carries the item itself."""


class EpsilonError(UsageError):
    """A privacy parameter outside the supported range."""


class QuestionError(UsageError):
    """A question to published records that has no meaning.

    `part` names the part of it that is wrong, as the command line writes it (--from), or is empty where parts do not
    fit together; `problem` says what is wrong.
    """

    def __init__(self, problem: str, part: str = "") -> None:
        super().__init__(f"{part}: {problem}" if part else problem)
        self.problem = problem
        self.part = part


class IncompatibleError(SfmStreamError, ValueError):
    """Sketches that differ in shape, hash, epsilon or mechanism and so cannot be combined."""


class FormatError(SfmStreamError, ValueError):
    """Bytes that a strict reader refuses.

    `field` names the part of the format, `problem` says what is wrong with it, `place` where the bytes are.
    """

    def __init__(self, field: str, problem: str, place: str = "") -> None:
        super().__init__(f"{place}: {field}: {problem}" if place else f"{field}: {problem}")
        self.field = field
        self.problem = problem
        self.place = place


class ConfigError(SfmStreamError):
    """A configuration that must not run. Each problem names the path of its setting."""

    exit_code = 3

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class BudgetError(ConfigError):
    """The worst case of a configuration exceeds `privacy.max_epsilon_per_item_day`."""


class EntropyError(SfmStreamError):
    """The entropy source failed or ran short."""

    exit_code = 5


class NothingCounted(SfmStreamError):
    """An input was read to its end, and nothing of it was counted."""

    exit_code = 8


class NothingFound(SfmStreamError):
    """Nothing that is published answers the question: not this key, not this span, or nothing at all."""

    exit_code = 9


class StateError(SfmStreamError):
    """The stored state, the input and the configuration do not fit together, or a bound is reached."""

    exit_code = 4


class UnusableRecords(StateError):
    """More records in a row than a limit allows that no rule can read, or that lie in the wrong partition."""


class BrokerError(SfmStreamError):
    """The broker is away, refuses the credentials, or cannot do what is asked; nothing is lost by starting again."""

    exit_code = 7


class BrokerAway(BrokerError):
    """No answer now, or none in time: another broker, or the same one later, may give it."""


class StorageError(SfmStreamError):
    """A disk is full, or does not do now what it can do; nothing that was committed is lost by starting again."""

    exit_code = 7


class ConflictError(SfmStreamError):
    """A second, different payload for a release that is already known."""

    exit_code = 6
