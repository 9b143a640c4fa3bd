"""A sample of an input file, for `check`: its first records."""

from __future__ import annotations

from collections.abc import Iterator

from sfm_stream.composition.sample import Sample, sample
from sfm_stream.config.config import Config
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.types import InputEnd, RecordBatch


def sample_file(config: Config, records: int) -> Sample:
    """What a run would make of the first `records` of the input. Opens the input only; commits nothing."""
    return sample(config, _batches(config), records)


def _batches(config: Config) -> Iterator[RecordBatch]:
    """The input, from its beginning."""
    lines = LineInput(config.input_path, complete=True)
    try:
        while not isinstance(batch := lines.read(0), InputEnd):
            if batch is not None:
                yield batch
    finally:
        lines.close()
