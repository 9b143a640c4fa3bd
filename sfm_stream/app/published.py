"""What a pipeline has published, wherever that is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sfm_stream.config import Config
from sfm_stream.transport.base import TopicReader
from sfm_stream.transport.sqlite import SqliteLog


@contextmanager
def published(config: Config) -> Iterator[TopicReader]:
    """A reader of the sketches and roll-ups of a configuration, open for this block."""
    if config.settings.kafka is None:
        reader = SqliteLog.open_reader(str(config.output_path))
        try:
            yield reader
        finally:
            reader.close()
        return
    # Where no cluster is used its client is not loaded either: that takes longer than most commands.
    from sfm_stream.app.cluster import topic_log

    with topic_log(config) as log:
        yield log
