"""Memory of a process that runs for long: what the interpreter's collector and the C library's heap do with it."""

from __future__ import annotations

import ctypes
import gc

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Names of glibc's mallopt()."""

KEPT_BYTES = 64 * 1024 * 1024
"""So much freed memory at the end of a heap stays with the process."""

MAPPED_BYTES = 32 * 1024 * 1024
"""From this size on memory is mapped by itself, and goes back to the system when it is freed. glibc takes no more."""


def settle_memory() -> None:
    """To be called when everything is loaded. What follows allocates and frees the same buffers again and again.

    The collector does not look again through what was loaded, and more seldom through the rest: a quarter of a worker's
    time. Buffers of the sizes of sketches, batches and requests are not given back to the system between uses, which
    would map and clear every page of them anew: a fifth of a release. Where the C library is another one than glibc,
    its heap stays as it is.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
    mallopt(_MMAP_THRESHOLD, MAPPED_BYTES)
