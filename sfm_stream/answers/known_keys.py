"""The keys that a pipeline has published anything under."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from sfm_stream.answers.asked_keys import AskedKey
from sfm_stream.answers.key_notation import key_text
from sfm_stream.answers.published_records import decoded, release_heads
from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.errors import QuestionError, SfmStreamError
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import KeyPart
from sfm_stream.units import FOREVER_MS, SKETCHES
from sfm_stream.wire.codec import CloseMarker
from sfm_stream.wire.keys import decode_key, encode_key

HeldKeys: TypeAlias = Callable[[TopicReader, bytes], Iterable[bytes]]
"""Canonical bytes of the keys of a pipeline that follow some bytes, in order, as whoever keeps them knows them."""


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
    held: HeldKeys | None = None,
) -> KeyPage:
    """Up to `limit` of the keys with a release, in the order of their canonical bytes.

    search: a part of the key as it is shown, in any case. after: only keys behind this one, such as the last one of the
    page before; it need not be published itself. Of an output file that several pipelines write into, keys without a
    release of this one are left out. held: whence the keys are taken, in place of the reader. Raises QuestionError for
    a limit below 1, and for an `after` that can be no key.
    """
    if limit < 1:
        raise QuestionError(f"a page of {limit} keys: ask for at least one", "limit")
    behind, wanted = b"" if after is None else _encoded(after), search.casefold()
    found: list[tuple[KeyPart, ...]] = []

    def is_asked(encoded: bytes) -> bool:
        return encoded > behind and wanted in key_text(decode_key(encoded)).casefold()

    for encoded in filter(is_asked, held(reader, behind)) if held else encoded_keys(reader, terms.pipeline, is_asked):
        if len(found) == limit:
            return KeyPage(tuple(found), more=True)
        found.append(decode_key(encoded))
    return KeyPage(tuple(found), more=False)


def known_among(reader: TopicReader, terms: ReleaseTerms, keys: Iterable[bytes]) -> list[bytes]:
    """Those of some keys, by their canonical bytes, that have a release, in the order of their bytes."""
    return [key for key in sorted(keys) if _has_release(reader, terms.pipeline, key)]


def _encoded(after: tuple[KeyPart, ...]) -> bytes:
    try:
        return encode_key(after)
    except SfmStreamError:
        raise QuestionError("it has text or a number that no key can hold", "after") from None


def encoded_keys(
    reader: TopicReader, pipeline: str, is_asked: Callable[[bytes], bool] = lambda _: True
) -> Iterator[bytes]:
    """Canonical bytes of the keys with a release of a pipeline that are asked for, in their order."""
    is_shared = _holds_others(reader, pipeline)
    for encoded in filter(is_asked, reader.keys(SKETCHES)):
        if not is_shared or _has_release(reader, pipeline, encoded):
            yield encoded


def _holds_others(reader: TopicReader, pipeline: str) -> bool:
    """Whether another pipeline has closed windows in the same topic: output files can be shared."""
    last = (decoded(SKETCHES, stored) for stored in reader.markers(SKETCHES, FOREVER_MS, FOREVER_MS))
    return any(isinstance(marker, CloseMarker) and marker.pipeline != pipeline for marker in last)


def _has_release(reader: TopicReader, pipeline: str, key: bytes) -> bool:
    question = Question("window", (AskedKey("", frozenset([key])),))
    return next(release_heads(reader, pipeline, question), None) is not None
