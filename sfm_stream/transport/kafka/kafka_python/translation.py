"""What an error of the client is told as: an error of this package, and one line that names the remedy.

Which error it becomes is the table of verdicts.py; its words are the table here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

import kafka.errors as kafka_errors
from kafka.errors import KafkaError, KafkaTimeoutError

from sfm_stream.errors import SfmStreamError
from sfm_stream.transport.kafka.kafka_python.verdicts import becomes, where_in_client

Translation: TypeAlias = Callable[[], AbstractContextManager[None]]
"""What gives translated() of one cluster."""
_CREDENTIALS = "check kafka.username, kafka.password_file or kafka.password_env, and kafka.sasl_mechanism"
_NETWORK_OR_SECURITY = "check kafka.bootstrap, the network and kafka.security"
_LARGER = "the topic takes no batch as large; raise its max.message.bytes, to 1048588 (1 MiB) or more"
_NEW_EPOCH = "raise pipeline.epoch and set window.start behind every window that is released"
HUNG_UP = "disconnected during authentication"
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
    (Exception, HUNG_UP, f"the broker hangs up, as it does where it refuses credentials; {_CREDENTIALS}"),
    (
        Exception,
        "socket disconnected",
        "the broker hangs up at once, as one does that expects TLS or credentials; check kafka.security and the port",
    ),
    (Exception, "ECONNRESET", "the broker hangs up at once; check kafka.security and the port"),
    (kafka_errors.InvalidReceiveError, "", "no answer of a Kafka; check kafka.security and the port"),
    (
        kafka_errors.OffsetOutOfRangeError,
        "",
        f"records that were to be read next are not there any more; of the input: {_NEW_EPOCH}",
    ),
    (
        kafka_errors.LogTruncationError,
        "",
        f"a broker came back with a shorter log than the one that was read; of the input: {_NEW_EPOCH}",
    ),
    (kafka_errors.MessageSizeTooLargeError, "", _LARGER),
    (kafka_errors.RecordListTooLargeError, "", _LARGER),
    (kafka_errors.KafkaConnectionError, "", f"no broker answers; {_NETWORK_OR_SECURITY}"),
    (kafka_errors.RequestTimedOutError, "", f"no broker answers in time; {_NETWORK_OR_SECURITY}"),
    (KafkaTimeoutError, "", f"no broker answers in time; {_NETWORK_OR_SECURITY}"),
)
"""Class of an error, text in it, and what it means here; the first that fits is taken."""


@contextmanager
def translated(bootstrap: Sequence[str]) -> Iterator[None]:
    """Inside it an error of the client becomes one of this package; what is none of the client's passes unchanged."""
    try:
        yield
    except SfmStreamError:
        raise
    except Exception as error:
        kind = becomes(error)
        if kind is None:
            raise
        raise kind(f"{cluster_name(bootstrap)}: {explained(error)}") from error


def cluster_name(bootstrap: Sequence[str]) -> str:
    """The first words of an error of this cluster."""
    return f"Kafka at {', '.join(bootstrap)}"


def explained(error: Exception) -> str:
    """What an error of the client means, and its own words, as one line.

    Of an error that is not meant for users only its class and where it arose: its words may hold anything.
    """
    if not isinstance(error, KafkaError | OSError) and (where := where_in_client(error)):
        return f"the client failed at {where} ({type(error).__name__})"
    name, words = type(error).__name__, " ".join(str(error).split())
    said = words if name in words else f"{name}: {words}" if words else name
    for kind, text, meaning in _MEANINGS:
        if isinstance(error, kind) and text in said:
            return f"{meaning} ({said})"
    return said
