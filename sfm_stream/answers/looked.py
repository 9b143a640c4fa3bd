"""Between the parts of a long answer it is looked whether the question has taken too long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from sfm_stream.transport.contract import TopicReader

T = TypeVar("T")


def looked(reader: TopicReader, parts: Iterable[T], every: int = 1) -> Iterator[T]:
    """The same parts. Before each, or one of so many, the reader is asked, as before its own queries: an error that its
    `before_query` raises ends the answer. A reader that nobody lends for a time has none.
    """
    look = getattr(reader, "before_query", None)
    for number, part in enumerate(parts):
        if look is not None and number % every == 0:
            look()
        yield part
