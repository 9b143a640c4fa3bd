"""Data: sets of integers, synthetic Bitcoin addresses, or the addresses of the BitcoinHeist file."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray

ADDRESSES = 2_631_095
"""Distinct addresses in the BitcoinHeist data (paper, "Data Sources")."""
ALPHABET = np.frombuffer(b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", np.uint8)
"""Base 58, as in Bitcoin addresses."""
_BATCH = 100_000


def distinct_integers(rng: np.random.Generator, n: int) -> NDArray[np.int64]:
    """Shape (n,): random integers, no two alike: a counter from a random start through the bijection of splitmix64."""
    z = rng.integers(0, 1 << 64, dtype=np.uint64) + np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).view(np.int64)


@dataclass(frozen=True)
class Addresses:
    """Texts by their xxHash64 digests, in a file, so that worker processes share them."""

    name: str
    path: Path

    def rekeyed(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Shape (n,): digest XOR a random key; the sketch hashes these again, so each trial has a hash of its own."""
        digests = np.load(self.path, mmap_mode="r")
        return (digests ^ rng.integers(0, 1 << 64, dtype=np.uint64)).view(np.int64)

    @property
    def count(self) -> int:
        return int(np.load(self.path, mmap_mode="r").size)


def synthetic_addresses(folder: Path, count: int = ADDRESSES) -> Addresses:
    """As many random base 58 texts of 34 characters as BitcoinHeist has addresses, the same ones each time."""
    path = folder / f"addresses-{count}.npy"
    if not path.exists():
        _store(path, _digests(_random_texts(np.random.default_rng(count), count)))
    return Addresses("synthetic", path)


def addresses_of_csv(file: Path, folder: Path) -> Addresses:
    """The distinct values of the column `address`; named after the content, so that another file is other data."""
    with file.open(newline="", encoding="utf-8") as rows:
        digests = _digests(row["address"].encode() for row in csv.DictReader(rows))
    content = xxhash.xxh64_hexdigest(digests.tobytes())
    path = folder / f"addresses-{content}.npy"
    _store(path, digests)
    return Addresses(f"{file.name} {content}", path)


def _digests(texts: Iterator[bytes]) -> NDArray[np.uint64]:
    """Sorted distinct digests. Two addresses of 2.6 million share one with probability 2e-7."""
    return np.unique(np.fromiter(map(xxhash.xxh64_intdigest, texts), np.uint64))


def _random_texts(rng: np.random.Generator, count: int) -> Iterator[bytes]:
    for start in range(0, count, _BATCH):
        letters = ALPHABET[rng.integers(0, 58, (min(_BATCH, count - start), 33))]
        yield from (b"1" + row.tobytes() for row in letters)


def _store(path: Path, digests: NDArray[np.uint64]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    with part.open("wb") as file:
        np.save(file, digests)
    part.replace(path)
