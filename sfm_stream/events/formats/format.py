"""What a format is: how the bytes of a record become the fields of an event.

A format has two readers. `read` takes one record, is exact and may be slow: it is the definition. `columns` takes a
block of records, is fast, and answers only for those whose fields it is certain of. The others are odd, and the caller
reads them one by one. tests/contract/test_format_contract.py holds every registered format to this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sfm_stream.events.event_schema import EventSchema
from sfm_stream.types import KeyValue, Reason

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
"""Of UTF-8; some producers write it before a record."""


class NotUnicode:
    """Stands for a text that holds half a surrogate pair, or bytes that are not UTF-8."""


NOT_UNICODE: Final = NotUnicode()


class Fields(NamedTuple):
    """The values of one record at the paths of the schema; None where a value is missing or null.

    reason: why the record as a whole is not counted: OK, or one of TOMBSTONE to DUPLICATE_FIELD. key: one value for
    each part. Values are of any type: the extractor judges them. NOT_UNICODE stands for a text without UTF-8.
    """

    reason: Reason
    item: object = None
    time: object = None
    key: tuple[object, ...] = ()


class FieldColumns(NamedTuple):
    """The fields of those records of a block that the format answers for, in the order of the records.

    keys: counting keys as they are interned: the bare value of one field, else a tuple of all. Parts are text or int64.
    times: int64, or a list of values of any type; None where the schema has no path for the time.
    items: int64, or the canonical bytes of each item (`encode_item`).
    odd: positions in the block of the records that are left out, ascending.
    """

    keys: list[KeyValue]
    times: NDArray[np.int64] | list[Any] | None
    items: NDArray[np.int64] | list[bytes]
    odd: list[int]


class Format(Protocol):
    """Reads the records of one schema. Neither method raises for the content of a record."""

    @property
    def schema(self) -> EventSchema: ...

    def read(self, value: bytes | None) -> Fields:
        """The fields of one record: the definition.

        A field that is given twice reads as None, and the reason is DUPLICATE_FIELD. A record that cannot be read as
        a whole has its own reason and no item; its time and key are given as far as they can be read. They must not
        depend on the content of the item, since the time moves the clock of the partition (docs/privacy.md).
        """
        ...

    def columns(self, values: Sequence[bytes | None]) -> FieldColumns:
        """The fields of the records that read() would give the same fields for, and the positions of the others.

        Such a record has the reason OK, an item that counts (text, int64, or a finite float where the schema has
        float_items), and a key of text and int64. Records that may be framed (events/framing.py) are odd. Which records
        are odd may change from call to call; what is given of a record may not.
        """
        ...
