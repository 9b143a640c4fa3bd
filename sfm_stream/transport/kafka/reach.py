"""The first connection to a cluster: why it failed, which kafka-python itself only logs, and what to look at.

kafka-python calls every bootstrap server again and again until its time is over, and then says that it was. Here it
gives up at once where each of them refuses for good, and raises what happened last.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import kafka.errors as kafka_errors
from kafka.errors import KafkaTimeoutError
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

_LOGGERS = [logging.getLogger("kafka.net"), logging.getLogger("kafka.cluster")]
_CREDENTIALS = "check kafka.username, kafka.password_file or kafka.password_env, and kafka.sasl_mechanism"
_NETWORK_OR_SECURITY = "check kafka.bootstrap, the network and kafka.security"
_HUNG_UP = "disconnected during authentication"
_MEANINGS: tuple[tuple[type[Exception], str, str], ...] = (
    (kafka_errors.SaslAuthenticationFailedError, "", f"the credentials are refused; {_CREDENTIALS}"),
    (
        kafka_errors.UnsupportedSaslMechanismError,
        "",
        "the broker does not take this kind of credentials; check kafka.sasl_mechanism",
    ),
    (kafka_errors.IllegalSaslStateError, "", "this port takes no credentials; check kafka.security and the port"),
    (kafka_errors.AuthorizationError, "", "this user may not do that; check kafka.username and its rights (ACLs)"),
    (
        Exception,
        "certificate is not valid for",
        "the broker's certificate is for another name; check kafka.bootstrap and kafka.check_hostname",
    ),
    (Exception, "CERTIFICATE_VERIFY_FAILED", "the broker's certificate is not trusted; check kafka.ca_file"),
    (
        Exception,
        "_ALERT_",
        "the broker refuses our side of TLS, perhaps for want of a certificate; check kafka.certificate_file",
    ),
    (
        Exception,
        "SSLError",
        "a file for TLS is not usable; check kafka.ca_file, kafka.certificate_file, kafka.key_file",
    ),
    (Exception, "Handshake failed", "this port does not speak TLS as we do; check kafka.security and the port"),
    (Exception, "ECONNREFUSED", "nothing listens there; check kafka.bootstrap"),
    (Exception, "DNS Resolution", "the name is not known; check kafka.bootstrap"),
    (Exception, _HUNG_UP, f"the broker hangs up, as it does where it refuses credentials; {_CREDENTIALS}"),
    (
        Exception,
        "socket disconnected",
        "the broker hangs up at once, as one does that expects TLS or credentials; check kafka.security and the port",
    ),
    (Exception, "ECONNRESET", "the broker hangs up at once; check kafka.security and the port"),
    (kafka_errors.InvalidReceiveError, "", "no answer of a Kafka; check kafka.security and the port"),
    (kafka_errors.KafkaConnectionError, "", f"no broker answers; {_NETWORK_OR_SECURITY}"),
    (kafka_errors.RequestTimedOutError, "", f"no broker answers in time; {_NETWORK_OR_SECURITY}"),
    (KafkaTimeoutError, "", f"no broker answers in time; {_NETWORK_OR_SECURITY}"),
)
"""Class of an error, text in it, and what it means here; the first that fits is taken."""


def explained(error: Exception) -> str:
    """What an error of the client means, and its own words, as one line."""
    name, words = type(error).__name__, " ".join(str(error).split())
    said = words if name in words else f"{name}: {words}" if words else name
    for kind, text, meaning in _MEANINGS:
        if isinstance(error, kind) and text in said:
            return f"{meaning} ({said})"
    return said


def _is_final(error: BaseException) -> bool:
    """Whether the same server would say the same again."""
    refused = (
        kafka_errors.SaslAuthenticationFailedError,
        kafka_errors.UnsupportedSaslMechanismError,
        kafka_errors.IllegalSaslStateError,
    )
    return isinstance(error, refused) or "SSL" in type(error).__name__ or "CERTIFICATE" in str(error)


class _Callers(KafkaConnectionManager):  # type: ignore[misc]  # kafka-python has no types
    """Remembers why each server could not be reached, leaves nothing behind where none could, and makes no topics."""

    def __init__(self, net: Any, **configs: Any) -> None:
        self._failures: dict[Any, Exception] = {}
        super().__init__(net, **configs)
        # What asks for a topic that was deleted would make it again. kafka-python (3.0.12) takes a setting for this and
        # does not hand it on.
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
        if not self.bootstrapped and self._failures:
            servers = [broker.node_id for broker in self.cluster.bootstrap_brokers()]
            if all(server in self._failures and _is_final(self._failures[server]) for server in servers):
                raise self._failures[servers[0]]
        connection = super().get_connection(node_id, **options)
        if not self.bootstrapped:
            connection.close_future.add_errback(lambda error: self._note(node_id, connection, error))
        return connection

    def _note(self, node_id: Any, connection: Any, error: Exception) -> None:
        # Of a refusal that comes together with the end of the connection kafka-python (3.0.12) sees the end only.
        if connection.sasl_enabled and connection.broker_version_data and "disconnected" in str(error):
            error = kafka_errors.KafkaConnectionError(_HUNG_UP)
        self._failures.pop(node_id, None)
        self._failures[node_id] = error


def client(**configs: Any) -> KafkaNetClient:
    """What kafka-python takes as `kafka_client`."""
    net = NetworkSelector(**configs)
    return KafkaNetClient(net, _Callers(net, **configs), **configs)


class _Quiet:
    """How many threads are in a block in which the network of the client logs nothing."""

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), 0

    def enter(self, change: int) -> None:
        with self.lock:
            self.inside += change
            for logger in _LOGGERS:
                if not logger.handlers:  # without any, what does not reach the log would go to standard error
                    logger.addHandler(logging.NullHandler())
                logger.propagate = not self.inside


_quiet = _Quiet()


@contextmanager
def reaching() -> Iterator[None]:
    """Make clients in this block: each failed attempt is not logged, what is raised tells."""
    _quiet.enter(1)
    try:
        yield
    finally:
        _quiet.enter(-1)
