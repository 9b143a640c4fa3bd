"""What the client does when a node goes away under it, alone and with what is hooked into it.

Each hook is shown to be needed: where the client alone does right, its test says that the hook can go.
"""

from __future__ import annotations

from importlib.metadata import version
from types import SimpleNamespace

import kafka.errors as kafka_errors
import pytest
from kafka.future import Future
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.producer.sender import Sender
from kafka.producer.transaction_manager import TransactionManager

from sfm_stream.errors import BrokerError
from sfm_stream.transport.kafka.kafka_python.hooks.connections import Callers, Client, Network
from sfm_stream.transport.kafka.kafka_python.translation import translated

HOOK_CAN_GO = "kafka-python {} does right by itself: remove {} (docs/decisions/0015)"


class Producer:
    """A real sender with a real state of transactions, which asks for its producer id from coordinator 1."""

    def __init__(self, kind: type[KafkaNetClient], manager: SimpleNamespace) -> None:
        net = SimpleNamespace(poll=lambda **_: None)
        self.state = TransactionManager(transactional_id="mine", api_version=(2, 5))
        self.result = self.state.initialize_transactions()
        self.state._transaction_coordinator = 1
        accumulator = SimpleNamespace(has_incomplete=False)
        self.sender = Sender(kind(net, manager), None, accumulator, transaction_manager=self.state, retry_backoff_ms=0)
        assert self.sender._maybe_send_pending_request()

    @property
    def due(self) -> list[str]:
        """The requests that are still to be sent, in this order."""
        return [handler.request.name for _, _, handler in sorted(self.state._pending_requests)]


def not_there(*_: object, **__: object) -> None:
    raise kafka_errors.NodeNotReadyError(1)


UNREACHABLE = SimpleNamespace(_conns={}, cluster=None, get_connection=not_there)


def test_a_request_whose_coordinator_cannot_be_reached_is_not_forgotten():
    alone = Producer(KafkaNetClient, UNREACHABLE)
    hint = HOOK_CAN_GO.format(version("kafka-python"), "Client.await_ready")
    assert alone.due == ["FindCoordinatorRequest"], hint
    assert not alone.result.is_done, hint
    hooked = Producer(Client, UNREACHABLE)
    assert hooked.due == ["FindCoordinatorRequest", "InitProducerIdRequest"]


@pytest.mark.parametrize(
    "error",
    [
        kafka_errors.RequestTimedOutError("Request timed out after 12000 ms"),
        kafka_errors.KafkaTimeoutError(),
        kafka_errors.Cancelled(),
        kafka_errors.NodeNotReadyError("Node paused"),
        kafka_errors.UnknownBrokerIdError(1),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_request_that_is_not_answered_is_asked_of_the_next_coordinator(error):
    def manager() -> SimpleNamespace:
        ready = SimpleNamespace(connected=True, paused=False)
        return SimpleNamespace(_conns={1: ready}, cluster=None, send=lambda *_, **__: Future().failure(error))

    alone = Producer(KafkaNetClient, manager())
    assert alone.state.has_fatal_error(), HOOK_CAN_GO.format(version("kafka-python"), "Client.send")
    hooked = Producer(Client, manager())
    assert not hooked.state.has_fatal_error()
    assert hooked.due == ["FindCoordinatorRequest", "InitProducerIdRequest"]


def test_a_request_that_is_refused_or_answered_stays_so():
    ready = SimpleNamespace(connected=True, paused=False)
    refused = kafka_errors.UnsupportedVersionError()
    manager = SimpleNamespace(_conns={1: ready}, cluster=None, send=lambda *_, **__: Future().failure(refused))
    assert Producer(Client, manager).state.last_error is refused
    manager.send = lambda *_, **__: Future().success("an answer")
    assert Client(SimpleNamespace(), manager).send(1, "a request").value == "an answer"


def test_a_leader_that_the_cluster_does_not_list_is_asked_again_later():
    """It was UnknownBrokerIdError, which ended workers; and the fetcher took the node for asked, for ever."""
    for kind in (KafkaConnectionManager, Callers):
        net = NetworkSelector()
        manager = kind(net, bootstrap_servers="127.0.0.1:1")
        if kind is KafkaConnectionManager:
            with pytest.raises(kafka_errors.UnknownBrokerIdError):  # noqa: PT012 -- says so where nothing is raised
                manager.send(SimpleNamespace(), node_id=-1)
                pytest.fail(HOOK_CAN_GO.format(version("kafka-python"), "the mending of get_connection"))
        else:
            assert isinstance(manager.send(SimpleNamespace(), node_id=-1).exception, kafka_errors.NodeNotReadyError)
        manager.close()
        net.close()


@pytest.mark.parametrize("error", [kafka_errors.RequestTimedOutError(), kafka_errors.KafkaConnectionError()])
def test_a_broker_that_is_silent_is_not_asked_over_its_other_connection(error):
    """Its two connections, one of them as a coordinator, and one of another broker."""
    net = NetworkSelector()
    manager = Callers(net, bootstrap_servers="127.0.0.1:1")
    manager._bootstrap_future = Future().success(True)
    nodes = {1: 9001, "coordinator-1": 9001, 2: 9002}
    manager.cluster._brokers = {
        node: SimpleNamespace(node_id=node, host="there", port=port, rack="") for node, port in nodes.items()
    }
    connections = {node: manager.get_connection(node) for node in nodes}
    connections["coordinator-1"].close(error)
    still = set(manager._conns)
    manager.close()
    net.close()
    assert still == ({2} if isinstance(error, kafka_errors.RequestTimedOutError) else {1, 2})


@pytest.mark.parametrize(("servers", "given_ms"), [(1, 60_000), (3, 3_300)])
def test_a_silent_server_is_not_given_the_time_of_the_others(servers, given_ms, monkeypatch):
    """One whose process is stopped still accepts connections."""
    given: list[float] = []

    def note(self: object, node_id: object, **options: float) -> None:
        given.append(options["timeout_ms"])
        raise kafka_errors.NodeNotReadyError(node_id)

    monkeypatch.setattr(KafkaConnectionManager, "get_connection", note)
    net = NetworkSelector()
    manager = Callers(net, bootstrap_servers=[f"there:{port}" for port in range(1, servers + 1)])
    with pytest.raises(kafka_errors.NodeNotReadyError):
        manager.get_connection("bootstrap-0", timeout_ms=60_000)
    assert given == [given_ms]
    manager.close()
    net.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_client_whose_thread_has_died_ends_the_worker(monkeypatch):
    """It answers nothing any more: waiting would be for ever."""
    net = Network()
    monkeypatch.setattr(net, "_poll_once", lambda *_: {}["gone"])
    net.start()
    net._io_thread.join()
    with pytest.raises(BrokerError) as raised, translated(("there:1",)):
        net.run(lambda: None)
    assert type(raised.value) is BrokerError
    assert "start again" in str(raised.value)
