"""What is read is the same in large pieces and in place, whole and in order; the end and errors are the socket's."""

import socket
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.net.transport import KafkaTCPTransport
from kafka.protocol.metadata import ApiVersionsResponse
from kafka.protocol.parser import KafkaProtocol

from sfm_stream.transport.kafka.kafka_python.hooks.large_reads import READ_BYTES, LargeReads, read_in_large_pieces


@pytest.fixture
def ends():
    here, there = socket.socketpair()
    here.setblocking(False)
    yield here, there
    here.close()
    there.close()


def test_what_waits_is_read_whole_by_few_calls(ends):
    here, there = ends
    transport = KafkaTCPTransport(None, here)
    read_in_large_pieces(transport)
    sent = bytes(range(256)) * 160
    there.sendall(sent)
    assert len(transport._sock.recv(4096)) == len(sent) <= READ_BYTES
    assert transport._sock_recv() == (b"", None), "the client is told of what was given, before more is given"
    there.sendall(sent)
    assert transport._sock_recv() == (sent, None)
    assert transport._sock_recv() == (b"", None), "nothing is there, and nothing is waited for"


def test_it_is_the_socket_in_all_else(ends):
    here, there = ends
    transport = KafkaTCPTransport(None, here)
    read_in_large_pieces(transport)
    assert transport._sock.fileno() == here.fileno()
    assert transport._sock.send(b"abc") == 3
    assert there.recv(10) == b"abc"
    there.close()
    data, error = transport._sock_recv()
    assert data == b""
    assert "disconnected" in str(error)


def test_a_transport_without_the_socket_stays_as_it_is():
    class Another:
        socket = "elsewhere"

    transport = Another()
    read_in_large_pieces(transport)
    assert vars(transport) == {}


class Connection:
    """What the transport tells of what it took, with the client's own parser behind it. answers: what it made of it."""

    def __init__(self, transport: KafkaTCPTransport) -> None:
        self.parser, self.answers = KafkaProtocol(client_id="test", receive_message_max_bytes=1 << 30), []
        self.parser._process_response = lambda buffer: memoryview(buffer.read())
        self.told: list[int] = []
        transport.set_protocol(self)

    def turn(self, transport: KafkaTCPTransport) -> str | None:
        """One turn of the client: read what is there, and take it. Returns what is wrong with the connection."""
        data, error = transport._sock_recv()
        self.told.append(len(data))
        self.answers += [bytes(answer) for answer in self.parser.receive_bytes(data)]
        return None if error is None else str(error)


def connected(here: socket.socket) -> tuple[KafkaTCPTransport, Connection]:
    transport = KafkaTCPTransport(None, here)
    read_in_large_pieces(transport)
    return transport, Connection(transport)


def framed(answer: bytes) -> bytes:
    return len(answer).to_bytes(4, "big") + answer


@given(
    st.lists(st.sampled_from([0, 1, 2, 5, 300, READ_BYTES - 5, READ_BYTES - 4, READ_BYTES, 150_000]), max_size=5),
    st.lists(st.integers(1, 90_000), min_size=1, max_size=8),
)
@settings(max_examples=100)
def test_answers_are_whole_however_they_arrive(sizes: Sequence[int], pieces: Sequence[int]):
    answers = [bytes([number]) * size for number, size in enumerate(sizes, 1)]
    sent, at, number = b"".join(map(framed, answers)), 0, 0
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        transport, connection = connected(here)
        while at < len(sent):
            piece = sent[at : at + pieces[number % len(pieces)]]
            there.sendall(piece)
            at, number = at + len(piece), number + 1
            while connection.turn(transport) is None and not emptied(here):
                pass
        assert connection.turn(transport) is None
        assert connection.answers == answers
        there.close()
        assert "disconnected" in (connection.turn(transport) or connection.turn(transport))


def emptied(sock: socket.socket) -> bool:
    try:
        sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    return False


def test_a_large_answer_is_read_into_its_place(ends):
    here, there = ends
    transport, connection = connected(here)
    answer = bytes(range(256)) * 1000
    there.sendall(framed(answer)[:1000])
    connection.turn(transport)
    for begin in range(1000, len(answer) + 4, 50_000):
        there.sendall(framed(answer)[begin : begin + 50_000])
        connection.turn(transport)
    assert connection.answers == [answer]
    assert connection.told[0] == 1000
    assert sum(connection.told[1:]) == 1, "only the last byte is handed over: all others are in their place"


def test_an_end_within_an_answer_is_the_end_of_the_connection(ends):
    here, there = ends
    transport, connection = connected(here)
    there.sendall(framed(b"a" * 1000)[:500])
    assert connection.turn(transport) is None
    there.close()
    assert "disconnected" in connection.turn(transport)
    assert connection.answers == []


def test_what_is_decoded_is_what_the_client_decodes_itself(ends):
    here, there = ends
    transport, connection = connected(here)
    answer = ApiVersionsResponse(version=3, error_code=0, api_keys=[], throttle_time_ms=7, supported_features=[])
    data = answer.encode(version=3)
    decoded = []
    connection.parser._process_response = lambda buffer: decoded.append(ApiVersionsResponse.decode(buffer, 3)) or b""
    for byte in framed(data):
        there.sendall(bytes([byte]))
        connection.turn(transport)
    assert decoded == [ApiVersionsResponse.decode(data, 3)]
    assert decoded[0].throttle_time_ms == 7


def test_a_connection_with_tls_reads_all_that_is_there(ends):
    class Tls(KafkaTCPTransport):
        """TLS keeps what it has decrypted, so that a turn must not end before all of it is taken."""

    here, there = ends
    transport = Tls(None, here)
    read_in_large_pieces(transport)
    assert type(transport._sock) is LargeReads
    there.sendall(b"a" * 10 + b"b" * READ_BYTES)
    assert transport._sock_recv() == (b"a" * 10 + b"b" * READ_BYTES, None)
