"""The only module that takes entropy.

Coins come from OpenSSL's generator (NIST SP 800-90A CTR-DRBG). The operating system seeds it, and it reseeds in a
forked child. This module keeps no state, so a fork copies none. docs/decisions/0003-coins.md explains the choice.
"""

from __future__ import annotations

import ssl
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import EntropyError


class Coins(Protocol):
    """A source of uniform bytes. Releases use SystemCoins; only tests use another one."""

    def digits(self, count: int) -> NDArray[np.uint8]:
        """Shape (count,): independent uniform bytes. Raises EntropyError rather than give fewer."""
        ...


class SystemCoins:
    """Bytes of OpenSSL's cryptographic generator."""

    def digits(self, count: int) -> NDArray[np.uint8]:
        try:
            drawn = ssl.RAND_bytes(count)
        except (ssl.SSLError, OSError) as error:
            raise EntropyError("the system's random generator failed; nothing was released") from error
        if len(drawn) != count:
            raise EntropyError(f"the system's generator gave {len(drawn)} of {count} bytes; nothing was released")
        return np.frombuffer(drawn, np.uint8)


SYSTEM_COINS = SystemCoins()
