"""Roll-ups that differ in nothing but window, coverage, figures and key: recognised by the bytes that they share.

    version 3    [ head | window | middle | numbers | tail | key ]

    head      the array header, and the fields from the version to the grain
    window    start_ms and end_ms
    middle    zone and unit
    numbers   the fields from `windows` to `status`
    tail      the fields from `buckets` to `count_epsilon`

What is shared comes from `encode`. The rest is of fields of a fixed length, with the key behind them; it is checked as
`decode` checks it, and what a form does not take is left to `decode`
(docs/decisions/0032-a-form-for-each-window.md).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from sfm_stream.errors import FormatError
from sfm_stream.types import Window
from sfm_stream.wire.codec import decode, decode_at, written
from sfm_stream.wire.fields import peek_version
from sfm_stream.wire.heads import ReleaseHead, RollupHead, head_at
from sfm_stream.wire.record_layouts import LAYOUTS, ROLLUP
from sfm_stream.wire.records import STATUSES, RollupRecord, WireRecord

_VERSION = 3
_WINDOW = struct.Struct(">BQBQ")
_NUMBERS = struct.Struct(">BQBQBQBBQBdBdBdBdBdBQ")
_NUMBER_TAGS = (*(0xCF,) * 3, 0xCF, *(0xCB,) * 5, 0xCF)
_FLAGS = {0xC2: False, 0xC3: True}
_NEGATIVE_ZERO = struct.pack(">d", -0.0)
_MOST_FORMS, _MOST_LENGTHS = 1024, 8


@dataclass(frozen=True, slots=True)
class _Places:
    """Where each part ends."""

    head: int
    window: int
    middle: int
    numbers: int
    tail: int


class RollupForm:
    """All roll-ups that have everything in common with `like` but window, numbers and key.

    like: one of them, without a tally.
    """

    def __init__(self, like: RollupRecord) -> None:
        self.like = like
        names = ["record", *(field.name for field in LAYOUTS[_VERSION][ROLLUP])]
        pieces = written(like)
        start, zone, windows, buckets = map(names.index, ("start_ms", "zone", "windows", "buckets"))
        self.head = b"".join(pieces[:start])
        self._middle, self._tail = b"".join(pieces[zone:windows]), b"".join(pieces[buckets:-1])
        window_end = len(self.head) + _WINDOW.size
        middle_end = window_end + len(self._middle)
        numbers_end = middle_end + _NUMBERS.size
        self._ends = _Places(len(self.head), window_end, middle_end, numbers_end, numbers_end + len(self._tail))

    def rollup_head(self, payload: bytes) -> RollupHead | None:
        """What `head_at` gives for a payload of this form; None for any other."""
        numbers = self._numbers(payload)
        if numbers is None:
            return None
        like, (_, start_ms, _, end_ms) = self.like, _WINDOW.unpack_from(payload, self._ends.head)
        revision = numbers[8]
        return RollupHead(like.pipeline, like.epoch, like.partition, like.grain, Window(start_ms, end_ms), revision)

    def record(self, payload: bytes) -> RollupRecord | None:
        """What `decode` gives for a payload of this form; None for any other, and for one that `decode` refuses."""
        numbers, like, ends = self._numbers(payload), self.like, self._ends
        if numbers is None or _NEGATIVE_ZERO in payload[ends.middle : ends.numbers]:
            return None
        _, start_ms, _, end_ms = _WINDOW.unpack_from(payload, ends.head)
        windows, decided, released, flag, revision = numbers[1], numbers[3], numbers[5], numbers[6], numbers[8]
        value, standard_error, low, high, confidence, status = numbers[10::2]
        if status >= len(STATUSES):
            return None
        try:
            return RollupRecord(
                like.pipeline,
                like.epoch,
                like.partition,
                like.partitions,
                like.grain,
                Window(start_ms, end_ms),
                like.zone,
                payload[ends.tail :],
                like.unit,
                windows,
                decided,
                released,
                _FLAGS[flag],
                revision,
                None,
                None,
                value,
                standard_error,
                low,
                high,
                confidence,
                STATUSES[status],
                like.origin,
                like.span,
                like.count_epsilon,
                like.kind,
            )
        except FormatError:
            return None

    def _numbers(self, payload: bytes) -> tuple[Any, ...] | None:
        """Tags and numbers, where all that is not a number or the key is that of the form."""
        ends = self._ends
        if (
            payload[: ends.head] != self.head
            or payload[ends.window : ends.middle] != self._middle
            or payload[ends.numbers : ends.tail] != self._tail
            or payload[ends.head] != 0xCF
            or payload[ends.head + _WINDOW.size // 2] != 0xCF
        ):
            return None
        numbers = _NUMBERS.unpack_from(payload, ends.middle)
        is_tagged = (*numbers[:6:2], *numbers[7::2]) == _NUMBER_TAGS and numbers[6] in _FLAGS
        return numbers if is_tagged else None


class RollupForms:
    """Reads many published records: roll-ups by the forms of those before them, whatever else as a whole."""

    def __init__(self) -> None:
        self._forms: dict[bytes, RollupForm] = {}
        self._lengths: list[int] = []

    def head_at(self, place: str, data: bytes) -> ReleaseHead | RollupHead | None:
        """As `heads.head_at`."""
        form = self._form(data)
        head = None if form is None else form.rollup_head(data)
        return head_at(place, data) if head is None else head

    def decode_at(self, place: str, data: bytes) -> WireRecord:
        """As `codec.decode_at`."""
        form = self._form(data)
        record = None if form is None else form.record(data)
        return decode_at(place, data) if record is None else record

    def _form(self, data: bytes) -> RollupForm | None:
        for length in self._lengths:
            if (form := self._forms.get(data[:length])) is not None:
                return form
        if peek_version(data) != _VERSION or len(self._forms) >= _MOST_FORMS or len(self._lengths) >= _MOST_LENGTHS:
            return None
        try:
            record = decode(data)
        except FormatError:
            return None
        if not isinstance(record, RollupRecord) or record.kind is None:
            return None
        form = RollupForm(record)
        if len(form.head) not in self._lengths:
            self._lengths.append(len(form.head))
        self._forms[form.head] = form
        return form
