"""Sockets that are read in large pieces: kafka-python asks for 4 KiB at a time, which is a call for every 30 events."""

from __future__ import annotations

from typing import Any

from sfm_stream.transport.kafka.kafka_python.hooks.private_names import PrivateNames

RELIES_ON: PrivateNames = {
    "kafka.net.transport:KafkaTCPTransport": {
        "_sock": "what it reads from, writes to and waits for",
        "_sock_recv(self)": "it takes all that self._sock.recv() gives, however much that is",
    },
}
READ_BYTES = 1 << 16


class LargeReads:
    """A connected socket whose recv() gives up to READ_BYTES, whatever is asked for."""

    __slots__ = ("_sock",)

    def __init__(self, sock: Any) -> None:
        self._sock = sock

    def recv(self, _: int) -> bytes:
        return bytes(self._sock.recv(READ_BYTES))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


def read_in_large_pieces(transport: Any) -> None:
    """From now on a transport of the client reads so; one that has its socket elsewhere stays as it is."""
    if getattr(transport, "_sock", None) is not None:
        transport._sock = LargeReads(transport._sock)
