"""What a pipeline keeps of itself, as bytes: a JSON array that begins with its version, read strictly.

JSON is text, so that a state also fits the metadata of a Kafka offset commit. A state of another version, with a field
too many or too few, or with a value of another type is refused: to go on from a guess could release a window twice.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import msgspec

from sfm_stream.errors import StateError
from sfm_stream.types import Commit


class StoredFields(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """Base of the fields of a stored state, in the order in which they are written."""

    version: int


class _Positioned(Protocol):
    @property
    def version(self) -> int: ...
    @property
    def offset(self) -> int: ...


_Fields = TypeVar("_Fields", bound=_Positioned)


class StateCodec(Generic[_Fields]):
    """Writes and reads one kind of stored state.

    fields: a StoredFields with an offset. version: the one that is written and read. name: what errors call the state.
    """

    def __init__(self, fields: type[_Fields], version: int, name: str = "the committed state") -> None:
        self.version = version
        self._decoder = msgspec.json.Decoder(fields, strict=True)
        self._name = name

    def encode(self, *values: object) -> bytes:
        """The bytes of the fields behind the version. Fields at the end that have a default may be left out."""
        return msgspec.json.encode((self.version, *values))

    def decode(self, payload: bytes, where: str) -> _Fields:
        """The fields in these bytes. where: begins every message.

        Raises StateError where the bytes are not exactly what this version writes.
        """
        try:
            stored = self._decoder.decode(payload)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StateError(f"{where}: {self._name} cannot be read: {error}") from error
        if stored.version != self.version:
            raise StateError(f"{where}: {self._name} has version {stored.version}, this release reads {self.version}")
        return stored

    def decode_commit(self, commit: Commit, where: str) -> _Fields:
        """The fields in the metadata of a position. Raises StateError, also where they are of another offset."""
        stored = self.decode(commit.metadata, where)
        if stored.offset != commit.offset:
            raise StateError(
                f"{where}: {self._name} is of another position: committed offset {commit.offset} differs from its "
                f"state's {stored.offset}"
            )
        return stored
