"""Keys as a page shows them, and the addresses that lead to them. Any text may be a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from sfm_stream.answers.asked_keys import AskedKey, asked_key
from sfm_stream.answers.key_notation import key_of_text, key_text
from sfm_stream.errors import SfmStreamError
from sfm_stream.types import KeyPart
from sfm_stream.wire.keys import encode_key

_MOST_SHOWN, _HEAD, _TAIL = 80, 56, 16
"""Characters of a key in a list: all, or so many of its beginning and of its end."""

Params = Mapping[str, str | Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class ShownKey:
    """A key for people. text: all of it, in one line, with nothing in it that hides. short: as a list shows it."""

    text: str
    short: str

    @property
    def is_cut(self) -> bool:
        return self.short != self.text


def shown_key(key: Sequence[KeyPart]) -> ShownKey:
    """A key as it is shown; a long one is cut in its middle, and its length said."""
    text = key_text(key)
    if len(text) <= _MOST_SHOWN:
        return ShownKey(text, text)
    return ShownKey(text, f"{text[:_HEAD]} … {text[-_TAIL:]} ({len(text):,} characters)")


def exact_key(text: str, fields: int) -> AskedKey:
    """The key that a text of `key_text` stands for; of another text every key that it may mean.

    Raises QuestionError where it can be no key of so many fields.
    """
    key = key_of_text(text)
    if key is not None and len(key) == fields:
        try:
            return AskedKey(text, frozenset([encode_key(key)]))
        except SfmStreamError:  # text or a number that no key can hold
            pass
    return asked_key(text, fields)


def other_readings(text: str, fields: int) -> frozenset[bytes]:
    """The keys that a text may mean besides the one that it stands for: 5 may be a text, written "5"."""
    return asked_key(text, fields).encoded - exact_key(text, fields).encoded


def address(*path: str, **params: str | Sequence[str] | None) -> str:
    """A path with a query, everything in it escaped; what is None or empty is left out."""
    query = urlencode({name.rstrip("_"): value for name, value in params.items() if value}, doseq=True)
    return "/" + "/".join(quote(part, safe="") for part in path) + (f"?{query}" if query else "")
