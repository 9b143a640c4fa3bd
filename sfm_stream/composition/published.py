"""Readers of what a pipeline has published, in an output file or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfm_stream import kernels
from sfm_stream.config.config import Config
from sfm_stream.errors import FormatError
from sfm_stream.transport.contract import TopicReader
from sfm_stream.transport.files.log_reader import LogReader


@contextmanager
def published(config: Config) -> Iterator[TopicReader]:
    """A reader of the sketches and roll-ups of a configuration, open for this block."""
    kernels.choose(config.worker.kernel)
    if not config.on_cluster:
        with published_file(config.output_path) as reader:
            yield reader
        return
    # Where no cluster is used its client is not loaded either: that takes longer than most commands.
    from sfm_stream.composition.kafka_cluster import topic_log

    with topic_log(config) as log:
        yield log


@contextmanager
def published_file(path: Path) -> Iterator[TopicReader]:
    """A reader of one output file, open for this block; a FormatError in it names the file."""
    reader = LogReader(str(path))
    try:
        yield reader
    except FormatError as error:
        raise FormatError(error.field, error.problem, f"{path}, {error.place}") from None
    finally:
        reader.close()
