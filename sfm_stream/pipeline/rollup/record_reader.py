"""Records of the sketch topic, decoded: releases of one window share most of their bytes, which are looked at once."""

from __future__ import annotations

from sfm_stream.wire.codec import Release, WireRecord, decode_at
from sfm_stream.wire.release_form import ReleaseForm


class RecordReader:
    """What `decode_at` gives for each payload, and raises; sooner for releases of the window that was met before."""

    __slots__ = ("_form", "_last")

    def __init__(self) -> None:
        self._form: ReleaseForm | None = None
        self._last: Release | None = None

    def read(self, place: str, payload: bytes) -> WireRecord:
        """The record of these bytes. Raises FormatError naming the place."""
        if self._form is not None and (release := self._form.release(payload)) is not None:
            return release
        record = decode_at(place, payload)
        if isinstance(record, Release):
            # A form pays from the third release of a window on.
            if self._last is not None and (self._last.window, self._last.epoch) == (record.window, record.epoch):
                self._form = ReleaseForm(record)
            self._last = record
        return record
