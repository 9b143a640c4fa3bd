"""Security of the link to a cluster: what the client is given, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfm_stream.config.security import client_security
from sfm_stream.config.tables import KafkaTable
from sfm_stream.errors import ConfigError

LOGIN = {"sasl_mechanism": "PLAIN", "username": "me", "password_file": "password"}
GIVEN_LOGIN = {"sasl_mechanism": "PLAIN", "sasl_plain_username": "me", "sasl_plain_password": "secret "}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in (("password", "secret \r\n"), ("empty", "\n"), ("ca.pem", "x"), ("own.pem", "x")):
        (tmp_path / name).write_bytes(content.encode())
    (tmp_path / "binary").write_bytes(b"\xff")
    return tmp_path


def table(**settings: Any) -> KafkaTable:
    ends = {"bootstrap": ["localhost:9092"], "topic": "visits", "timestamps": "create_time"}
    return KafkaTable.model_validate(ends | settings)


def test_the_client_is_given_what_belongs_to_each_protocol(folder: Path) -> None:
    assert client_security(table(), folder) == {"security_protocol": "PLAINTEXT"}
    assert client_security(table(security="sasl_plaintext", **LOGIN), folder) == {
        "security_protocol": "SASL_PLAINTEXT",
        **GIVEN_LOGIN,
    }
    assert client_security(table(security="tls", ca_file="ca.pem"), folder) == {
        "security_protocol": "SSL",
        "ssl_cafile": str(folder / "ca.pem"),
        "ssl_check_hostname": True,
    }
    files = {"certificate_file": "own.pem", "key_file": "own.pem", "check_hostname": False}
    assert client_security(table(security="sasl_tls", **LOGIN, **files), folder) == {
        "security_protocol": "SASL_SSL",
        **GIVEN_LOGIN,
        "ssl_certfile": str(folder / "own.pem"),
        "ssl_keyfile": str(folder / "own.pem"),
        "ssl_check_hostname": False,
    }


def test_a_password_may_be_in_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISITS_PASSWORD", "other")
    settings = table(security="sasl_tls", **LOGIN | {"password_file": None, "password_env": "VISITS_PASSWORD"})
    assert client_security(settings, folder)["sasl_plain_password"] == "other"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"username": "me"},
            'kafka.sasl_mechanism, kafka.username: only for security = "sasl_plaintext" or "sasl_tls"',
        ),
        ({"security": "sasl_tls", "username": "me"}, 'needed for security = "sasl_tls"'),
        ({"security": "sasl_tls", **LOGIN, "password_env": "X"}, "kafka.password_file, kafka.password_env: only one"),
        ({"security": "sasl_tls", **LOGIN, "password_file": "none"}, "kafka.password_file: No such file"),
        ({"security": "sasl_tls", **LOGIN, "password_file": "empty"}, "kafka.password_file: the file is empty"),
        ({"security": "sasl_tls", **LOGIN, "password_file": "binary"}, "kafka.password_file: not UTF-8 text"),
        (
            {"security": "sasl_tls", **LOGIN, "password_file": None, "password_env": "VISITS_NONE"},
            "kafka.password_env: the environment variable VISITS_NONE is not set",
        ),
        ({"key_file": "own.pem"}, 'kafka.ca_file and others: only for security = "tls" or "sasl_tls"'),
        ({"security": "tls", "certificate_file": "none.pem"}, "kafka.certificate_file: .*none.pem is not a file"),
    ],
)
def test_what_does_not_belong_together_is_refused(folder: Path, settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        client_security(table(**settings), folder)
    assert "secret" not in str(caught.value)
