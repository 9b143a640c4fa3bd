"""The header that serializers of a schema registry write before a record. It is recognised, and the record not counted.

Framing is apart from the format: the payload behind the header may be of any. A zero byte at the beginning is no valid
beginning of a JSON text, so no plain record is taken for a framed one.
"""

from __future__ import annotations

from typing import Final

from sfm_stream.events.formats.format import BYTE_ORDER_MARK, Fields, Format
from sfm_stream.types import Reason

FRAME_HEADER_BYTES: Final = 5
"""A zero byte and the number of the schema."""
_FIRST_BYTES = bytes([0, BYTE_ORDER_MARK[0]])
"""Of a framed record."""


def read_record(form: Format, value: bytes | None) -> Fields:
    """The fields of one record, framed or not; of a framed one its time and key, with the reason FRAMED."""
    if not value or not may_be_framed(value):
        return form.read(value)
    payload = _payload(value, form.schema.max_record_bytes)
    if payload is None:
        return form.read(value)
    return form.read(payload)._replace(reason=Reason.FRAMED, item=None)


def may_be_framed(value: bytes) -> bool:
    """Whether a record, which is not empty, begins as framed ones do. A format must not answer for it by columns."""
    return value[0] in _FIRST_BYTES


def _payload(value: bytes, max_record_bytes: int) -> bytes | None:
    """What stands behind the header of a framed record; None for a record without one, or one that is too long."""
    start = len(BYTE_ORDER_MARK) if value.startswith(BYTE_ORDER_MARK) else 0
    if not FRAME_HEADER_BYTES <= len(value) - start <= max_record_bytes or value[start] != 0:
        return None
    return value[start + FRAME_HEADER_BYTES :]
