"""The hash of items, whose key may lie in a file of its own."""

from __future__ import annotations

from pathlib import Path

from sfm_stream.config.tables import SketchTable
from sfm_stream.errors import ConfigError
from sfm_stream.sketch.hashing import XXH64, ItemHash, keyed_blake2b


def item_hash_of(sketch: SketchTable, folder: Path) -> ItemHash:
    """The hash that the settings name. Relative paths are taken from `folder`. Raises ConfigError."""
    if sketch.hash == "xxh64":
        if sketch.hash_key_file is not None:
            raise ConfigError('sketch.hash_key_file: only for sketch.hash = "blake2b"')
        return XXH64
    if sketch.hash_key_file is None:
        raise ConfigError('sketch.hash_key_file: needed for sketch.hash = "blake2b": a file of 16 to 64 random bytes')
    try:
        return keyed_blake2b((folder / sketch.hash_key_file).read_bytes())
    except OSError as error:
        raise ConfigError(f"sketch.hash_key_file: {error.strerror or error}") from None
