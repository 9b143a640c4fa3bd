"""Tallies as fields of a roll-up: bit planes of the counts, and in version 2 what each release says of its window."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

from sfm_stream.errors import FormatError, UsageError
from sfm_stream.sketch.sfm import NoisyCount
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.sketch.window_sizes import WindowSizes
from sfm_stream.units import INT31_MAX


def planes_of(tally: Tally) -> bytes:
    """The bit planes of the counts, plane 0 first: releases.bit_length() = ceil(log2(releases + 1)) bitmaps."""
    columns = np.ascontiguousarray(tally.counts, "<i4").reshape(-1, 1).view(np.uint8)  # 8 bits a column
    planes = []
    for bit in range(tally.releases.bit_length()):
        planes.append(np.packbits(columns[:, bit // 8] & np.uint8(1 << bit % 8), bitorder="little"))
    return b"".join(plane.tobytes() for plane in planes)


def sizes_of(tally: Tally) -> tuple[bytes, bytes]:
    """(ones, counts): of each release its noisy ones by level and its noisy count, in big-endian words.

    Both are empty where the sizes were not kept, and the second where the releases have no counts.
    """
    sizes = tally.sizes
    if sizes is None:
        return b"", b""
    values = [count.value for count in sizes.counts if count is not None]
    return sizes.ones.astype(">u4").tobytes(), np.array(values, ">i8").tobytes()


def tally_of(shape: SketchShape, values: dict[str, Any], count_epsilon: Decimal | None) -> Tally:
    """The inverse of both. values: the fields of a record by name; without `ones` it is one of version 1.

    count_epsilon: of each of the releases; None for releases without a count. Sizes are checked first, so a false
    length in a record allocates no memory. Raises FormatError.
    """
    releases, planes = values["released"], values["planes"]
    if not 1 <= releases <= INT31_MAX:
        raise FormatError("released", f"{releases} is outside 1..{INT31_MAX}")
    require_length("planes", planes, releases.bit_length() * shape.nbytes)
    columns = np.zeros((4, shape.cells), np.uint8)
    for bit in range(releases.bit_length()):
        plane = np.frombuffer(planes, np.uint8, shape.nbytes, bit * shape.nbytes)
        columns[bit // 8] |= np.unpackbits(plane, bitorder="little") << np.uint8(bit % 8)
    counts = np.ascontiguousarray(columns.T).view("<i4").astype(np.int32).reshape(-1)
    if int(counts.max()) > releases:
        raise FormatError("planes", f"a count of {int(counts.max())} where there are {releases} releases")
    sizes = _sizes(shape, releases, values, count_epsilon) if values.get("ones") else None
    try:
        return Tally(
            shape, values["k"], values["hash"], releases, counts.reshape(shape.levels, shape.buckets), sizes=sizes
        )
    except UsageError as error:
        raise FormatError("ones", str(error)) from None


def require_length(field: str, content: bytes, expected: int) -> None:
    """Raise FormatError unless the field has this many bytes."""
    if len(content) != expected:
        raise FormatError(field, f"{len(content)} bytes where the header asks for {expected}")


def _sizes(shape: SketchShape, releases: int, values: dict[str, Any], count_epsilon: Decimal | None) -> WindowSizes:
    ones, numbers = values["ones"], values["counts"]
    require_length("ones", ones, 4 * releases * shape.levels)
    table = np.frombuffer(ones, ">u4").reshape(releases, shape.levels)
    if int(table.max()) > shape.buckets:
        raise FormatError("ones", f"{int(table.max())} ones in a level of {shape.buckets} buckets")
    counts: tuple[NoisyCount | None, ...] = (None,) * releases
    if count_epsilon is not None:
        require_length("counts", numbers, 8 * releases)
        counts = tuple(NoisyCount(number, count_epsilon) for number in np.frombuffer(numbers, ">i8").tolist())
    return WindowSizes(table.astype(np.int32), counts)
