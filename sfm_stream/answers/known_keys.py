"""The keys that a pipeline has published anything under."""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.answers.key_notation import key_text
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.errors import QuestionError
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import KeyPart
from sfm_stream.units import SKETCHES
from sfm_stream.wire.keys import decode_key, encode_key


@dataclass(frozen=True, slots=True)
class KeyPage:
    """Some published keys, in the order of their canonical bytes. more: whether others follow."""

    keys: tuple[tuple[KeyPart, ...], ...]
    more: bool


def known_keys(
    reader: TopicReader,
    terms: ReleaseTerms,
    search: str = "",
    after: tuple[KeyPart, ...] | None = None,
    limit: int = 100,
) -> KeyPage:
    """Up to `limit` of the keys with a release, in the order of their canonical bytes.

    search: a part of the key as it is shown, in any case. after: only keys behind this one, such as the last one of the
    page before; it need not be published itself. A sketch topic is that of one pipeline, so terms are those of its
    keys. Raises QuestionError for a limit below 1.
    """
    if limit < 1:
        raise QuestionError(f"a page of {limit} keys: ask for at least one", "limit")
    behind, wanted = b"" if after is None else encode_key(after), search.casefold()
    found: list[tuple[KeyPart, ...]] = []
    for encoded in reader.keys(SKETCHES):
        if encoded <= behind:
            continue
        key = decode_key(encoded)
        if wanted in key_text(key).casefold():
            if len(found) == limit:
                return KeyPage(tuple(found), more=True)
            found.append(key)
    return KeyPage(tuple(found), more=False)
