"""Sockets that are read in large pieces, and large answers in place.

kafka-python asks for 4 KiB at a time, which is a call for every 30 events, and copies what it gets five times until it
is decoded. Here an answer that does not come at once is read into the buffer that the client has for it, and decoded
from there.
"""

from __future__ import annotations

from typing import Any

from kafka.net.transport import KafkaTCPTransport
from kafka.protocol.frame import KafkaBytes

from sfm_stream.transport.kafka.kafka_python.hooks.private_names import PrivateNames

RELIES_ON: PrivateNames = {
    "kafka.net.transport:KafkaTCPTransport": {
        "_sock": "what it reads from, writes to and waits for",
        "_sock_recv(self)": (
            "it takes all that self._sock.recv() gives, however much that is, until that raises BlockingIOError"
        ),
        "_protocol": "the connection, which is told of all that was taken, be it nothing",
    },
    "kafka.net.connection:KafkaConnection": {
        "parser": "it makes answers of the bytes; None before the connection is made",
    },
    "kafka.protocol.parser:KafkaProtocol": {
        "_receiving": "whether the length of an answer is known and the rest of it is awaited",
        "_rbuffer": "a KafkaBytes with room for that answer; the next one gets another",
    },
    "kafka.protocol.frame:KafkaBytes": {
        "_idx": "how far it is written; then how far it is read",
        "read(self, nbytes=None)": "without a number the rest, of which decode() makes a memoryview",
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


class ReadsInPlace(LargeReads):
    """The same, which writes what belongs to an answer that is awaited into its buffer, all but its last byte.

    That byte is given as any other, and has the client decode the answer. One piece is given at a time, as the client
    has to be told of it before it is known what the next one belongs to.
    """

    __slots__ = ("_given", "_transport")

    def __init__(self, sock: Any, transport: KafkaTCPTransport) -> None:
        super().__init__(sock)
        self._transport, self._given = transport, False

    def recv(self, _: int) -> bytes:
        if self._given:
            self._given = False
            raise BlockingIOError
        parser = getattr(self._transport._protocol, "parser", None)
        if parser is not None and parser._receiving and not self._filled(parser._rbuffer):
            return b""
        given = super().recv(READ_BYTES)
        self._given = bool(given)
        return given

    def _filled(self, answer: KafkaBytes) -> bool:
        """True once all but the last byte is there; False where the other end has closed. Raises BlockingIOError."""
        answer.__class__ = _FilledAnswer
        with memoryview(answer) as room:
            while answer._idx < len(answer) - 1:
                if not (read := self._sock.recv_into(room[answer._idx : -1])):
                    return False
                answer._idx += read
        return True


class _FilledAnswer(KafkaBytes):  # type: ignore[misc]  # kafka-python has no types
    """An answer whose rest is read without a copy."""

    _idx: int

    def read(self, nbytes: int | None = None) -> Any:
        if nbytes is not None:
            return super().read(nbytes)
        rest = memoryview(self)[self._idx :]
        self._idx = len(self)
        return rest


def read_in_large_pieces(transport: Any) -> None:
    """From now on a transport of the client reads so; one that has its socket elsewhere stays as it is.

    TLS keeps bytes of its own, which no wait for the socket tells of: there every turn has to read all that is there.
    """
    if (sock := getattr(transport, "_sock", None)) is not None:
        plain = type(transport) is KafkaTCPTransport
        transport._sock = ReadsInPlace(sock, transport) if plain else LargeReads(sock)
