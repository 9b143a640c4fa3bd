"""What is read is the same in large pieces, whole and in order; the end and errors are those of the socket."""

import socket

import pytest
from kafka.net.transport import KafkaTCPTransport

from sfm_stream.transport.kafka.kafka_python.hooks.large_reads import READ_BYTES, read_in_large_pieces


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
