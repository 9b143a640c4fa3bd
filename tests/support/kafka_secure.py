"""A broker with a listener for each kind of security, and the files and users that go with it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from support.kafka_cluster import KafkaCluster, KafkaUnavailable
from support.kafka_nodes import free_ports

SECRETS = {"alice": "alice-has-a-secret", "carol": "carol-has-none-too"}
"""Users and passwords; carol may do nothing."""
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
LISTENERS = {"TLS": "SSL", "MUTUAL": "SSL", "SASLTLS": "SASL_SSL", "SASL": "SASL_PLAINTEXT"}
"""Names and protocols; MUTUAL asks for a certificate of the client."""


def openssl(folder: Path, *call: str) -> None:
    subprocess.run(["openssl", *call], cwd=folder, check=True, capture_output=True)


def make_certificates(folder: Path) -> None:
    """ca.pem and other-ca.pem; broker.pem for 127.0.0.1 and worker.pem, of the first one, each with its key."""
    if not shutil.which("openssl"):
        raise KafkaUnavailable("no openssl")
    folder.mkdir()
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc")
    for name in ("ca", "other-ca"):
        openssl(
            folder, "req", "-x509", *new_key, "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key",
            "-out", f"{name}.pem",
        )  # fmt: skip
    for name in ("broker", "worker"):
        openssl(
            folder, "req", "-x509", *new_key, "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key",
            "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE",
            "-CA", "ca.pem", "-CAkey", "ca.key", "-out", f"{name}.pem",
        )  # fmt: skip
    both = (folder / "broker.key").read_text() + (folder / "broker.pem").read_text()
    (folder / "broker-store.pem").write_text(both)


class SecureCluster(KafkaCluster):
    """certificates: the folder of the files; addresses: listener to host and port."""

    format_options = tuple(
        word
        for mechanism in MECHANISMS[1:]
        for user, secret in SECRETS.items()
        for word in ("--add-scram", f"{mechanism}=[name={user},password={secret}]")
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.certificates = folder / "certificates"
        make_certificates(self.certificates)
        ports = free_ports(len(LISTENERS))
        self.addresses = {name: f"127.0.0.1:{port}" for name, port in zip(LISTENERS, ports, strict=True)}

    def node_settings(self, node: int) -> dict[str, object]:
        settings = super().node_settings(node)
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule required "
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        users = " ".join(f'user_{user}="{secret}"' for user, secret in SECRETS.items())
        settings["listeners"] = ",".join(
            [str(settings["listeners"]), *(f"{name}://{address}" for name, address in self.addresses.items())]
        )
        protocols = ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items())
        settings["listener.security.protocol.map"] = f"{settings['listener.security.protocol.map']},{protocols}"
        for name in ("sasltls", "sasl"):
            settings[f"listener.name.{name}.sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
            settings[f"listener.name.{name}.plain.sasl.jaas.config"] = f"{plain}{users};"
            for mechanism in MECHANISMS[1:]:
                settings[f"listener.name.{name}.{mechanism.lower()}.sasl.jaas.config"] = scram
        return settings | {
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.certificates / "broker-store.pem",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.certificates / "ca.pem",
            "listener.name.mutual.ssl.client.auth": "required",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:alice;User:CN=worker",
        }
