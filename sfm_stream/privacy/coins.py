"""The only module that takes entropy.

Flips come from OpenSSL's generator (NIST SP 800-90A CTR-DRBG), which the operating system seeds and which reseeds in
a forked child (docs/decisions/0003-coins.md has the choice and its measurements). No state is kept here, so none can
be copied by a fork.
"""

from __future__ import annotations

import ssl
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import EntropyError


class Coins(Protocol):
    """A source of uniform digits. Only tests use another one than SystemCoins."""

    def digits(self, count: int) -> NDArray[np.uint8]:
        """Shape (count,): independent uniform bytes. Raises EntropyError rather than give fewer."""
        ...


class SystemCoins:
    """Bytes from the operating system's cryptographic generator, through OpenSSL."""

    def digits(self, count: int) -> NDArray[np.uint8]:
        try:
            drawn = ssl.RAND_bytes(count)
        except (ssl.SSLError, OSError) as error:
            raise EntropyError("the system's random generator failed; nothing was released") from error
        if len(drawn) != count:
            raise EntropyError(f"the system's generator gave {len(drawn)} of {count} bytes; nothing was released")
        return np.frombuffer(drawn, np.uint8)


SYSTEM_COINS = SystemCoins()
