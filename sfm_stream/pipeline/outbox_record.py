"""One record of the outbox, judged by itself: is it one that ingest workers write here, and of this partition?

Releases come in runs that differ in key, bits and count alone. The first of a run is decoded whole, and must pass every
check; of the others the bytes that they share with it are compared. Both ways take and refuse the same records: see
ReleaseForm.read, and docs/decisions/0032-a-form-for-each-window.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.errors import FormatError, StateError
from sfm_stream.wire.codec import CloseMarker, Release, decode
from sfm_stream.wire.keys import MARKER_KEY
from sfm_stream.wire.release_form import ReleaseForm


@dataclass(frozen=True, slots=True)
class RunRelease:
    """A release of a run. like: the one of the run that was decoded; its key, bits and count are its own."""

    like: Release
    release_id: bytes
    key: bytes


class OutboxRecords:
    """Reads the records of one partition of the outbox of one pipeline."""

    def __init__(self, pipeline: str, partition: int) -> None:
        self._pipeline, self._partition = pipeline, partition
        self._form: ReleaseForm | None = None
        """The form of the last release that was decoded, which passed the checks."""

    def read(self, where: str, key: bytes | None, payload: bytes | None) -> RunRelease | CloseMarker:
        """What is in a record. key: of the record. Raises StateError, beginning with `where`."""
        if payload is not None and self._form is not None and (found := self._form.read(payload)) is not None:
            release = RunRelease(self._form.like, *found)
            _require_key(where, release.key, key, "release")
            return release
        record = self._decoded(where, payload)
        if isinstance(record, CloseMarker):
            _require_key(where, MARKER_KEY, key, "close marker")
            return record
        _require_key(where, record.key, key, "release")
        self._form = ReleaseForm(record)
        return RunRelease(record, record.release_id, record.key)

    def _decoded(self, where: str, payload: bytes | None) -> Release | CloseMarker:
        if payload is None:
            raise StateError(f"{where}: an empty record")
        try:
            record = decode(payload)
        except FormatError as error:
            raise StateError(f"{where}: not a record of this version: {error}") from error
        if not isinstance(record, Release | CloseMarker):
            raise StateError(f"{where}: a roll-up record where a release or a close marker is expected")
        if record.pipeline != self._pipeline:
            raise StateError(f"{where}: a record of pipeline {record.pipeline}, expected {self._pipeline}")
        if record.partition != self._partition:
            raise StateError(f"{where}: a record of partition {record.partition} of the input")
        return record


def _require_key(where: str, expected: bytes, key: bytes | None, kind: str) -> None:
    if key != expected:
        raise StateError(f"{where}: the record key is not the one of the {kind} in it")
