"""The list of all keys, which can be searched."""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.answers.key_notation import key_of_text
from sfm_stream.answers.known_keys import known_keys
from sfm_stream.errors import QuestionError
from sfm_stream.serve.pages.key_display import address, shown_key
from sfm_stream.serve.pages.links import Link
from sfm_stream.serve.served import ServedPipeline
from sfm_stream.transport.contract import TopicReader

_AT_A_TIME = 100


@dataclass(frozen=True, slots=True)
class KeysView:
    """Some keys. more: where the next ones are; "" behind the last. is_first: no keys come before these."""

    keys: tuple[tuple[Link, str], ...]
    more: str
    is_first: bool


def keys_view(served: ServedPipeline, reader: TopicReader, search: str, after: str) -> KeysView:
    """The keys with this text in them, behind one of them. Raises QuestionError for an `after` that is no key."""
    pipeline, behind = served.config.pipeline.id, None
    if after and (behind := key_of_text(after)) is None:
        raise QuestionError(f"{after!r} is no key: begin again without it", "after")
    page = known_keys(reader, served.terms, search, behind, _AT_A_TIME, served.held_keys)
    shown = [shown_key(key) for key in page.keys]
    more = address("p", pipeline, "keys", search=search, after=shown[-1].text) if page.more else ""
    links = tuple((Link(key.short, address("p", pipeline, "key", key=key.text)), key.text) for key in shown)
    return KeysView(links, more, behind is None)
