"""Security of the link to a cluster: which settings belong together, and what the client is given for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfm_stream.config.credentials import password
from sfm_stream.config.tables import KafkaTable
from sfm_stream.errors import ConfigError

_PROTOCOLS = {"plaintext": "PLAINTEXT", "tls": "SSL", "sasl_plaintext": "SASL_PLAINTEXT", "sasl_tls": "SASL_SSL"}
_FILES = {"ca_file": "ssl_cafile", "certificate_file": "ssl_certfile", "key_file": "ssl_keyfile"}
"""Setting to the client's name for it."""


def client_security(kafka: KafkaTable, folder: Path) -> Mapping[str, Any]:
    """Keyword arguments for the client of a cluster, secrets among them. Relative paths are taken from `folder`.

    Raises ConfigError for settings that do not belong together, and for files that are not there.
    """
    return {"security_protocol": _PROTOCOLS[kafka.security], **_login(kafka, folder), **_encryption(kafka, folder)}


def _login(kafka: KafkaTable, folder: Path) -> dict[str, Any]:
    if not kafka.security.startswith("sasl"):
        if kafka.sasl_mechanism or kafka.username:
            raise ConfigError(
                'kafka.sasl_mechanism, kafka.username: only for security = "sasl_plaintext" or "sasl_tls"'
            )
        return {}
    secret = password(folder, kafka.password_file, kafka.password_env)
    if kafka.sasl_mechanism is None or kafka.username is None or secret is None:
        raise ConfigError(
            "kafka.sasl_mechanism, kafka.username, and kafka.password_file or kafka.password_env: needed "
            f'for security = "{kafka.security}"'
        )
    return {
        "sasl_mechanism": kafka.sasl_mechanism,
        "sasl_plain_username": kafka.username,
        "sasl_plain_password": secret,
    }


def _encryption(kafka: KafkaTable, folder: Path) -> dict[str, Any]:
    given = {setting: file for setting in _FILES if (file := getattr(kafka, setting)) is not None}
    if not kafka.security.endswith("tls"):
        if given:
            raise ConfigError('kafka.ca_file and others: only for security = "tls" or "sasl_tls"')
        return {}
    for setting, file in given.items():
        if not (folder / file).is_file():
            raise ConfigError(f"kafka.{setting}: {folder / file} is not a file")
    files = {_FILES[setting]: str(folder / file) for setting, file in given.items()}
    return files | {"ssl_check_hostname": kafka.check_hostname}
