"""A pipeline on files: questions are answered from its output file, which a run may be writing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sfm_stream.answers.release_terms import release_terms
from sfm_stream.clock import now_ms
from sfm_stream.config.config import Config
from sfm_stream.errors import SfmStreamError
from sfm_stream.serve.held_keys import HeldKeys
from sfm_stream.serve.reader_pool import ReaderPool
from sfm_stream.serve.served import ServedPipeline, ServedProgress
from sfm_stream.serve.turns import Turns
from sfm_stream.transport.files.log_reader import LogReader
from sfm_stream.units import ROLLUPS, SKETCHES


@contextmanager
def served_file(config: Config, turns: Turns) -> Iterator[ServedPipeline]:
    """A pipeline on files, for this block. Its output file need not be there yet."""
    pool = ReaderPool(config.pipeline.id, str(config.output_path), LogReader, turns)
    held = HeldKeys(config.pipeline.id, lambda: pool.files)
    # Another server counts files from the beginning.
    begun_ms = now_ms()

    def progress() -> ServedProgress:
        try:
            with pool.lent():
                return ServedProgress(True)
        except SfmStreamError as error:
            return ServedProgress(False, problem=str(error))

    def log_end() -> str:
        with pool.lent() as reader:
            ends = [
                reader.end_offset(topic, each) for topic in (SKETCHES, ROLLUPS) for each in reader.partitions(topic)
            ]
        return f"{begun_ms} {pool.files} {ends}"

    try:
        yield ServedPipeline(config, release_terms(config), pool.reader, progress, log_end, held.behind)
    finally:
        pool.close()
