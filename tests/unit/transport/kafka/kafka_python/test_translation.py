"""What the errors of the client mean, and that nothing is logged while it is called."""

from __future__ import annotations

import logging
import ssl
from types import SimpleNamespace

import kafka.errors as kafka_errors
import pytest

from sfm_stream.errors import BrokerError
from sfm_stream.transport.kafka.kafka_python.client import KafkaPythonCluster
from sfm_stream.transport.kafka.kafka_python.hooks.connections import Callers
from sfm_stream.transport.kafka.kafka_python.quiet_network import connecting_quietly
from sfm_stream.transport.kafka.kafka_python.translation import explained

MEANT = [
    (kafka_errors.SaslAuthenticationFailedError("no"), "kafka.password_file"),
    (kafka_errors.UnsupportedSaslMechanismError("no"), "kafka.sasl_mechanism"),
    (kafka_errors.IllegalSaslStateError(), "kafka.security"),
    (kafka_errors.TopicAuthorizationFailedError("topic t"), "ACL"),
    (kafka_errors.KafkaConnectionError("Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED] self-signed"), "ca_file"),
    (kafka_errors.KafkaConnectionError("certificate is not valid for 'a'"), "kafka.check_hostname"),
    (kafka_errors.KafkaConnectionError("[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] x"), "kafka.certificate_file"),
    (ssl.SSLError(1, "[X509: KEY_VALUES_MISMATCH] key values mismatch"), "kafka.key_file"),
    (kafka_errors.KafkaConnectionError("Handshake failed: [SSL: WRONG_VERSION_NUMBER]"), "kafka.security"),
    (kafka_errors.KafkaConnectionError("111 ECONNREFUSED"), "kafka.bootstrap"),
    (kafka_errors.KafkaConnectionError("DNS Resolution failure"), "kafka.bootstrap"),
    (kafka_errors.KafkaConnectionError("socket disconnected"), "kafka.security"),
    (kafka_errors.InvalidReceiveError("Invalid frame length: 352518912"), "kafka.security"),
    (kafka_errors.KafkaTimeoutError("Unable to bootstrap"), "kafka.bootstrap"),
    (kafka_errors.OffsetOutOfRangeError({}), "pipeline.epoch"),
    (kafka_errors.LogTruncationError({}), "pipeline.epoch"),
]


@pytest.mark.parametrize(("error", "setting"), MEANT, ids=[str(error)[:40] for error, _ in MEANT])
def test_an_error_names_the_setting_to_look_at_in_one_line(error, setting):
    said = explained(error)
    assert setting in said.partition("(")[0] + said.partition("(ACL")[1]
    assert "\n" not in said


def test_an_error_that_nothing_is_known_of_is_told_as_it_is():
    assert explained(kafka_errors.InvalidTopicError("a\nb")) == "[Error 17] InvalidTopicError: a b"
    assert explained(OSError()) == "OSError"


def test_a_connection_that_ends_where_credentials_are_shown_points_to_these():
    callers = Callers.__new__(Callers)
    callers._failures = {}
    shown = SimpleNamespace(sasl_enabled=True, broker_version_data=object())
    callers._note("a", shown, kafka_errors.KafkaConnectionError("socket disconnected"))
    assert "kafka.password_file" in explained(callers._failures["a"])
    plain = SimpleNamespace(sasl_enabled=False, broker_version_data=object())
    callers._note("a", plain, kafka_errors.KafkaConnectionError("socket disconnected"))
    assert "kafka.password_file" not in explained(callers._failures["a"])


def test_the_network_is_silent_until_the_last_call_is_over(caplog):
    logger = logging.getLogger("kafka.net.manager")
    with connecting_quietly():
        with connecting_quietly():
            logger.error("one")
        logger.error("two")
    logger.error("three")
    assert [record.message for record in caplog.records] == ["three"]


def test_a_secret_is_in_no_error_and_in_no_repr():
    cluster = KafkaPythonCluster(("127.0.0.1:1",), {"sasl_plain_password": "hush"})
    assert "hush" not in repr(cluster)
    with pytest.raises(BrokerError) as caught, cluster.translated():
        raise kafka_errors.SaslAuthenticationFailedError("no")
    assert "hush" not in str(caught.value)
    assert str(caught.value).startswith("Kafka at 127.0.0.1:1: ")
