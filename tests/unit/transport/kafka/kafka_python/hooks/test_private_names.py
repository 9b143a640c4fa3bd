"""The client is one whose insides are known: the hooks hang on names that kafka-python does not promise."""

from __future__ import annotations

from importlib.metadata import version

KNOWN = "3.0"


def test_the_client_is_one_whose_insides_are_known():
    found = version("kafka-python")
    assert found.startswith(KNOWN + "."), (
        f"kafka-python {found}: the modules in transport/kafka/kafka_python/hooks reach into the insides of {KNOWN}; "
        "go through them, and through the tests here, before another version is allowed"
    )
