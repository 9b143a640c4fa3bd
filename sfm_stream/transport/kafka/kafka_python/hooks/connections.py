"""Connections to a cluster: why the first one failed, and what happens to requests when a later one is lost.

kafka-python calls every bootstrap server again and again until its time is over, and then says that it was. Here it
gives up at once where each of them refuses for good, and raises what happened last. Where a node goes away later, it
forgets requests that it should send to another one (docs/decisions/0015).
"""

from __future__ import annotations

import logging
from threading import Event
from typing import Any
from weakref import WeakSet

import kafka.errors as kafka_errors
from kafka.errors import KafkaTimeoutError
from kafka.future import Future
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from sfm_stream.errors import BrokerError
from sfm_stream.transport.kafka.kafka_python.hooks.large_reads import read_in_large_pieces
from sfm_stream.transport.kafka.kafka_python.hooks.private_names import PrivateNames
from sfm_stream.transport.kafka.kafka_python.translation import HUNG_UP, explained
from sfm_stream.transport.kafka.kafka_python.verdicts import Verdict, verdict

_log = logging.getLogger(__name__)
_PAUSE_S = 0.1
"""Between two looks for a coordinator that cannot be connected to."""
_CALL_MS = 3_300
"""How long one of several servers is called; kafka-python gives all of the time to one that accepts and is silent."""


RELIES_ON: PrivateNames = {
    "kafka.net.manager:KafkaConnectionManager": {
        "bootstrap(self, timeout_ms=None, refresh=True)": "it calls the servers until one answers or the time is over",
        "get_connection(self, node_id, timeout_ms=None, ...)": (
            "every connection comes from it; it raises UnknownBrokerIdError for a node that is not listed"
        ),
        "bootstrapped": "true once a server has answered",
        "_conns": "node to its connection",
        "_net": "the network, to be closed where no server answers",
        "_build_transport(self, node, timeout_at=None)": "every socket is in what it returns",
    },
    "kafka.net.selector:NetworkSelector": {
        "run_forever(self)": "the thread of the client runs it, and ends with it",
        "_exception": "it is raised by every call once it is set",
    },
    "kafka.net.compat:KafkaNetClient": {
        "await_ready(self, node_id, timeout_ms=30000)": (
            "the sender asks it whether a coordinator is connected, and looks for another where not"
        ),
        "send(self, node_id, request, **kwargs)": (
            "requests of the sender go through it, and a connection error means that it asks again"
        ),
    },
    "kafka.producer.sender:Sender": {
        "_maybe_send_pending_request(self)": (
            "it asks await_ready() of the client, and puts the request back where it says no"
        ),
    },
}


def _is_final(error: BaseException) -> bool:
    """Whether the same server would say the same again."""
    refused = (
        kafka_errors.SaslAuthenticationFailedError,
        kafka_errors.UnsupportedSaslMechanismError,
        kafka_errors.IllegalSaslStateError,
    )
    return isinstance(error, refused) or "SSL" in type(error).__name__ or "CERTIFICATE" in str(error)


class Callers(KafkaConnectionManager):  # type: ignore[misc]  # kafka-python has no types
    """The client's connections. They remember why each server could not be reached, and never create topics.

    Where no server can be reached, bootstrap() closes everything that it opened.
    """

    def __init__(self, net: Any, **configs: Any) -> None:
        self._failures: dict[Any, Exception] = {}
        self._watched: WeakSet[Any] = WeakSet()
        super().__init__(net, **configs)
        # A request for the metadata of a deleted topic would create it again. kafka-python (3.0.12) has a setting
        # against that, and does not hand it on.
        self.cluster.config["allow_auto_create_topics"] = False

    def bootstrap(self, timeout_ms: float | None = None, refresh: bool = True) -> None:
        try:
            super().bootstrap(timeout_ms, refresh)
        except BaseException as error:
            self.close()
            self._net.close()
            if isinstance(error, KafkaTimeoutError):
                raise next(reversed(self._failures.values()), error) from None
            raise
        self._failures.clear()

    def get_connection(self, node_id: Any, **options: Any) -> Any:
        if not self.bootstrapped:
            servers = [broker.node_id for broker in self.cluster.bootstrap_brokers()]
            if all(server in self._failures and _is_final(self._failures[server]) for server in servers):
                raise self._failures[servers[0]]
            if len(servers) > 1 and (patience_ms := options.get("timeout_ms")) is not None:
                options["timeout_ms"] = min(patience_ms, _CALL_MS)
        try:
            connection = super().get_connection(node_id, **options)
        except kafka_errors.UnknownBrokerIdError as error:
            # A leader that the brokers do not list any more, or yet. kafka-python (3.0.12) awaits only a node that is
            # not ready: it would take this one for asked, and never ask it again.
            if self.bootstrapped:
                self.cluster.request_update()
            raise kafka_errors.NodeNotReadyError(f"the cluster does not list node {node_id} now") from error
        if connection not in self._watched:
            self._watched.add(connection)
            connection.close_future.add_errback(lambda error: self._lost(node_id, connection, error))
        return connection

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        transport = await super()._build_transport(node, timeout_at)
        read_in_large_pieces(transport)
        return transport

    def _lost(self, node_id: Any, connection: Any, error: Exception) -> None:
        if not self.bootstrapped:
            self._note(node_id, connection, error)
        elif isinstance(error, kafka_errors.RequestTimedOutError):
            # A broker that is a coordinator has two connections. If it is silent on one, it must not be asked on the
            # other.
            silent = self._address(node_id)
            for other in [other for other in self._conns if other != node_id and self._address(other) == silent]:
                self._conns[other].close(kafka_errors.KafkaConnectionError(f"node {node_id} is silent"))

    def _address(self, node_id: Any) -> tuple[str, int] | None:
        node = self.cluster.broker_metadata(node_id)
        return None if node is None else (node.host, node.port)

    def _note(self, node_id: Any, connection: Any, error: Exception) -> None:
        # Of a refusal that comes together with the end of the connection kafka-python (3.0.12) sees the end only.
        if connection.sasl_enabled and connection.broker_version_data and "disconnected" in str(error):
            error = kafka_errors.KafkaConnectionError(HUNG_UP)
        self._failures.pop(node_id, None)
        self._failures[node_id] = error


class Network(NetworkSelector):  # type: ignore[misc]
    """The client's network. If its thread dies, every later call raises an error: no call would ever be answered."""

    def run_forever(self) -> None:
        try:
            super().run_forever()
        except BaseException as error:
            self._exception = BrokerError(
                f"the network thread of the Kafka client ended ({type(error).__name__}); start again"
            )
            raise


class Client(KafkaNetClient):  # type: ignore[misc]
    """Keeps the requests of a producer's transaction when the broker goes away that they are for.

    kafka-python (3.0.12) drops a request whose coordinator cannot be connected to, and waits for its answer for ever.
    It gives up a transaction when an answer is late, or when the connection is closed instead of reset. Here all of
    these are treated as a reset is: the coordinator is looked up again, and the request is sent again.
    """

    def await_ready(self, node_id: Any, timeout_ms: float = 30_000) -> bool:
        """Whether a node is connected, now or within the time."""
        try:
            return bool(super().await_ready(node_id, timeout_ms))
        except Exception as error:
            _log.debug("node %s is not ready: %s", node_id, error)
            Event().wait(_PAUSE_S)
            return False

    def send(self, node_id: Any, request: Any, **options: Any) -> Future:
        """The answer; a KafkaConnectionError for whatever means that none will come."""
        answer = Future()

        def failed(error: Exception) -> None:
            unanswered = not isinstance(error, kafka_errors.KafkaConnectionError) and verdict(error) is Verdict.AWAY
            answer.failure(kafka_errors.KafkaConnectionError(explained(error)) if unanswered else error)

        super().send(node_id, request, **options).add_callback(answer.success).add_errback(failed)
        return answer


def hooked_client(**configs: Any) -> Client:
    """What kafka-python takes as `kafka_client`."""
    net = Network(**configs)
    return Client(net, Callers(net, **configs), **configs)
