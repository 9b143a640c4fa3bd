"""Stored state as bytes: what is written is read again, and everything else is refused by name."""

from __future__ import annotations

import msgspec
import pytest

from sfm_stream.errors import StateError
from sfm_stream.types import Commit
from sfm_stream.wire.stored_state import StateCodec, StoredFields

OFFSET, NAME = 7, "käfer"


class Fields(StoredFields, frozen=True):
    offset: int
    name: str
    key: bytes | None
    note: str = ""


CODEC = StateCodec(Fields, version=3)
GOOD = '[3,7,"käfer","AP8="]'.encode()


def test_what_is_written_is_text_and_is_read_again():
    assert CODEC.encode(OFFSET, NAME, b"\x00\xff") == GOOD
    assert CODEC.decode(GOOD, "here") == Fields(3, OFFSET, NAME, b"\x00\xff", "")
    assert CODEC.decode(CODEC.encode(OFFSET, NAME, None, "n"), "here") == Fields(3, OFFSET, NAME, None, "n")
    assert CODEC.decode_commit(Commit(0, OFFSET, GOOD), "here") == CODEC.decode(GOOD, "here")


def damaged():
    values = msgspec.json.decode(GOOD)
    yield "empty", b""
    yield "not JSON", b"\xff\xfe"
    yield "not text", GOOD[:-1] + b"\xff"
    yield "cut off", GOOD[:-1]
    yield "something behind", GOOD + b"x"
    yield "an object", b"{}"
    yield "a field too few", msgspec.json.encode(values[:-1])
    yield "a field too many", msgspec.json.encode([*values, "", 1])
    for place in range(len(values)):
        yield f"field {place} of a wrong type", msgspec.json.encode([*values[:place], [], *values[place + 1 :]])
    yield "a float for an integer", GOOD.replace(b",7,", b",7.0,")
    yield "text for an integer", GOOD.replace(b",7,", b',"7",')
    yield "a truth value for a version", GOOD.replace(b"[3,", b"[true,")


@pytest.mark.parametrize(("name", "payload"), [pytest.param(*case, id=case[0]) for case in damaged()])
def test_bytes_that_are_no_such_state_are_refused(name, payload):
    with pytest.raises(StateError, match=r"^here: the committed state cannot be read: "):
        CODEC.decode(payload, "here")


def test_another_version_and_another_position_are_refused_with_both_numbers():
    with pytest.raises(StateError, match=r"^here: the committed state has version 4, this release reads 3$"):
        CODEC.decode(GOOD.replace(b"[3", b"[4"), "here")
    with pytest.raises(
        StateError,
        match=r"^here: the committed state is of another position: committed offset 8 differs from its state's 7$",
    ):
        CODEC.decode_commit(Commit(0, OFFSET + 1, GOOD), "here")


def test_the_name_of_the_state_is_in_every_message():
    codec = StateCodec(Fields, version=4, name="an entry")
    for call in (lambda: codec.decode(b"[]", "x"), lambda: codec.decode(GOOD, "x")):
        with pytest.raises(StateError, match=r"^x: an entry "):
            call()
