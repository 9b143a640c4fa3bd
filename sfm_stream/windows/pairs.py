"""Key id and cell of a row as one number, which sorts by key and then by cell; and columns of them."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

SHIFT = np.uint64(32)
_LOW32 = np.uint64(0xFFFFFFFF)
_Ints = TypeVar("_Ints", NDArray[np.uint64], NDArray[np.int32])


def pairs_of(key_ids: NDArray[np.int32], cells: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Shape (n,). key_ids >= 0."""
    return (key_ids.astype(np.uint64) << SHIFT) | cells


def keys_of(pairs: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Shape (n,): the key ids."""
    return (pairs >> SHIFT).astype(np.int32)


def cells_of(pairs: NDArray[np.uint64] | NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Shape (n,): the cells; of cells they themselves."""
    return (pairs & _LOW32).astype(np.uint32)


def distinct(ascending: _Ints) -> _Ints:
    """The values of a sorted column without repetition; several times faster than np.unique, which hashes."""
    if len(ascending) < 2:
        return ascending
    keep = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=keep[1:])
    return ascending[keep]


def set_bits(bitmap: NDArray[np.uint8], pairs: NDArray[np.uint64] | NDArray[np.uint32]) -> None:
    """Set the cells of pairs, whatever their keys are, in a packed bitmap."""
    cells = cells_of(pairs)
    np.bitwise_or.at(bitmap, cells >> np.uint32(3), np.uint8(1) << (cells & np.uint32(7)).astype(np.uint8))
