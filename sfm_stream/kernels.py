"""Which kernel computes what both can: Python's, or the compiled one of the distribution sfm-stream-native.

Both give the same results, so the choice shows in no release, no position and no answer. It is made once for a process.
Of what a function of the compiled kernel is given it keeps nothing. One of its objects does: a KeyIndex holds the open
keys of one partition, for the KeyTable that has made it and as long as that lives. Its hash has a seed that the system
gives, so that nobody can choose keys that meet; the seed decides where in memory a key stands, and shows in no result.
Nothing else in the kernel takes entropy: the coins of releases are drawn by Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

from sfm_stream.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sfm_stream.types import KeyValue

Kernel: TypeAlias = Literal["python", "native"]
Setting: TypeAlias = Literal["auto", "python", "native"]

Buffer: TypeAlias = "bytes | memoryview | NDArray[Any]"
"""What a buffer of bytes is read from. numpy is not loaded for it."""

VERSION = "0.1.0"
"""Of sfm-stream-native, and of this package: what the two say to each other changes with any of them."""


ColumnsOfRecords: TypeAlias = (
    "tuple[bytearray, bytearray, bytearray, bytearray, bytearray, list[KeyValue], bytearray, bytearray, Records]"
)
"""In the order of events/native_extractor.py, which gives them names."""

Records: TypeAlias = list[bytes | None]

PlainBatches: TypeAlias = tuple[int, int, int, int, int]
"""Where they end in the fetch; how many batches and records they are; the offset behind them; the last leader epoch."""


class KeyIndex(Protocol):
    """The open keys of one partition, each with an id from 0 on. Both kernels have one, and give the same ids."""

    def __len__(self) -> int: ...
    def key_of(self, key_id: int) -> KeyValue:
        """The key of an id. Raises KeyError where no key has it."""
        ...

    def keys_in_order(self) -> list[KeyValue]:
        """All keys, in the order of their ids."""
        ...

    def id_of(self, key: KeyValue) -> int:
        """The id of a key, -1 where it is not held."""
        ...

    def ids_of(self, keys: Sequence[KeyValue | None]) -> Buffer:
        """int32: the id of each key, -1 where it is not held. None is no key."""
        ...

    def intern(self, keys: Sequence[KeyValue]) -> list[int]:
        """The ids of distinct keys none of which is held, in their order: freed ones first, the last freed before all
        others, then new ones in a row.
        """
        ...

    def retain(self, live: bytes) -> None:
        """Free the ids that are not among these (int32), in ascending order, and give back memory. An id above those of
        all keys that are left is forgotten: it will be a new one.
        """
        ...


class PlainRecords(Protocol):
    """Reads the plain records of one schema, and keeps nothing of them. index: a KeyIndex of the same kernel, in which
    keys are looked up; none is added.
    """

    @staticmethod
    def of(
        item: Sequence[str],
        time: Sequence[str] | None,
        key: Sequence[Sequence[str]],
        unit: str,
        naive_is_utc: bool,
        band_ms: tuple[int, int],
        max_record_bytes: int,
        bucket_bits: int,
        levels: int,
    ) -> PlainRecords | None:
        """Paths from the outside in, and the settings of an EventSchema. None where the schema is for Python alone."""
        ...

    def batches(
        self, batches: Sequence[bytes], firsts: Sequence[int], most_bytes: int, index: KeyIndex
    ) -> ColumnsOfRecords | None:
        """Of whole batches in Kafka's message format 2, in each text one or several, one behind the other. The first of
        them is read from the text's own first offset on.

        None where a batch is not plain: of another format, damaged, or of more than most_bytes decompressed.
        """
        ...

    def lines(
        self, texts: Sequence[bytes], firsts: Sequence[int], most_bytes: int, index: KeyIndex
    ) -> ColumnsOfRecords:
        """Of whole lines, as LineBatch cuts them. firsts: the offset of the first byte of each text."""
        ...


class Native(Protocol):
    """What the compiled kernel offers. Buffers are contiguous and read-only; what is given back is bytes."""

    @property
    def KeyIndex(self) -> type[KeyIndex]: ...
    @property
    def PlainRecords(self) -> type[PlainRecords]: ...

    def bitmap(self, cells: Buffer, nbytes: int) -> bytes:
        """nbytes bytes in which the bits of these cells are set, the lowest first. cells: uint32, below 8 * nbytes."""
        ...

    def compare(self, digits: Buffer, wanted: int) -> tuple[bytes, bytes]:
        """(packed bits, the lowest first, of digit < wanted; uint32, where a digit is equal), for digits of a byte."""
        ...

    def plain_batches(
        self,
        fetched: Buffer,
        at: int,
        next_offset: int,
        appended: bool,
        most_bytes: int,
        most_records: int,
        check_crcs: bool,
    ) -> PlainBatches | None:
        """The plain batches that follow each other from `at` on in what was fetched of a partition; None for none.

        Plain is a whole batch of message format 2 with a right check sum (where check_crcs asks for it), uncompressed,
        with records and not of control, with time stamps of the broker as `appended` says. Its offsets begin at
        next_offset or behind it, then behind those of the batch before. Together they have at most most_bytes and
        most_records. Whether a transaction was aborted is not looked at.
        """
        ...

    def settle(self, packed: bytes, tied: bytes, digits: Buffer, wanted: int) -> tuple[bytes, bytes]:
        """What `compare` gave, where each tied one has one more digit: those of digit < wanted are set; still tied."""
        ...


@dataclass
class _Choice:
    setting: Setting = "auto"


_CHOICE = _Choice()


def choose(setting: Setting) -> None:
    """Takes a kernel for this process. "auto", which holds until then: the compiled one where it is installed.

    Raises ConfigError, with the remedy, where "native" is asked for and cannot be had.
    """
    if setting == "native" and (problem := why_not()):
        raise ConfigError(f"worker.kernel: {problem}. Install it with: pip install 'sfm-stream[native]=={VERSION}'")
    _CHOICE.setting = setting


def native() -> Native | None:
    """The compiled kernel where it is in use, else None."""
    return None if _CHOICE.setting == "python" else _installed()[0]


def in_use() -> Kernel:
    """The name of the kernel in use."""
    return "python" if native() is None else "native"


def why_not() -> str:
    """Why "auto" does not take the compiled kernel; empty where it does."""
    return _installed()[1]


@cache
def _installed() -> tuple[Native | None, str]:
    """(the compiled kernel, why it cannot be had): one of them is given."""
    try:
        import sfm_stream_native
    except ModuleNotFoundError:
        return None, "sfm-stream-native is not installed"
    except ImportError as error:
        return None, f"sfm-stream-native cannot be loaded: {error}"
    if sfm_stream_native.__version__ != VERSION:
        return None, f"sfm-stream-native {sfm_stream_native.__version__} is installed, and {VERSION} is needed"
    return cast("Native", sfm_stream_native), ""
